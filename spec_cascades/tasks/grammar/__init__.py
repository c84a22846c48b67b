"""A synchronous English-German grammar: lexicon, word forms, phrases, clauses."""
