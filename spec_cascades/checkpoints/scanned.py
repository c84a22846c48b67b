"""T5X's other parameter trees, brought into the one that our T5 has.

`scalable_t5` differs from `t5` in two ways. Its layers are scanned: those of a stack lie under one
name (`encoder/encoder`, `decoder/decoder`), stacked along axis 1. And heads are axes of their own:
a query kernel is [embed, layers, heads, head size], an output kernel [heads, layers, head size,
embed]. Without scanning only the second holds. Each of its layers has its own relative position
table (`T5Config.shared_relative_bias` = False).

Leaves may be arrays or `jax.ShapeDtypeStruct`s, so that shapes can be checked before anything is
read; or any other object with `shape`, indexing and `reshape`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

LAYER_AXIS = 1
"""Where the layers of a scanned stack lie (T5X's default `param_scan_axis`)."""

_STACKS = ("encoder", "decoder")
_ATTENTIONS = ("attention", "self_attention", "encoder_decoder_attention")


def to_per_layer(tree: Mapping[str, Any]) -> dict[str, Any]:
    """Brings a T5X tree into our form: one subtree for each layer, heads merged.

    Args:
        tree: the parameters (what T5X has below `target`), scanned or not; not modified.

    Returns:
        The tree as `T5.init` gives it; one that has that form already comes back equal.

    Raises:
        ValueError: the stacked parameters of a stack disagree about the number of layers.
    """
    tree = dict(tree)
    for stack in _STACKS:
        if not isinstance(tree.get(stack), Mapping):
            continue
        layers = {name: part for name, part in tree[stack].items() if name != stack}
        if stack in tree[stack]:
            layers |= _unstack(tree[stack][stack], stack)
        tree[stack] = {
            name: _map(_merge_heads, part) if name.startswith("layers_") else part
            for name, part in layers.items()
        }
    return tree


def _unstack(stacked: Mapping[str, Any], stack: str) -> dict[str, Any]:
    """Splits the parameters of a scanned stack into `layers_0`, `layers_1`, ..."""
    names = {}
    _map(lambda path, leaf: names.setdefault(leaf.shape[LAYER_AXIS], "/".join(path)), stacked)
    if len(names) != 1:
        found = ", ".join(f"{name} has {depth}" for depth, name in names.items())
        raise ValueError(f"{stack}/{stack}: the layers disagree about their number: {found}")
    (depth,) = names
    return {
        f"layers_{i}": _map(lambda _, leaf, i=i: _layer(leaf, i), stacked) for i in range(depth)
    }


def _layer(leaf, i: int):
    """One layer of a stacked parameter."""
    if isinstance(leaf, jax.ShapeDtypeStruct):
        shape = (*leaf.shape[:LAYER_AXIS], *leaf.shape[LAYER_AXIS + 1 :])
        return jax.ShapeDtypeStruct(shape, leaf.dtype)
    return leaf[:, i]


def _merge_heads(path: tuple[str, ...], leaf):
    """Merges heads and head size of an attention kernel that keeps them apart."""
    if len(leaf.shape) != 3 or path[0] not in _ATTENTIONS:
        return leaf
    a, b, c = leaf.shape
    shape = (a * b, c) if path[1] == "out" else (a, b * c)
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return jax.ShapeDtypeStruct(shape, leaf.dtype)
    return leaf.reshape(shape)


def _map(function, tree: Any, path: tuple[str, ...] = ()) -> Any:
    """Applies `function(path, leaf)` to the leaves of nested mappings."""
    if isinstance(tree, Mapping):
        return {name: _map(function, part, (*path, name)) for name, part in tree.items()}
    return function(path, tree)
