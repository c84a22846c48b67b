"""The commands of `spec-cascades`, one module each."""
