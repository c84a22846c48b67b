"""What parameter trees, T5X's and Hugging Face's, say about a T5."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from spec_cascades.checkpoints import arrays, scanned
from spec_cascades.checkpoints.arrays import Arrays, LazyArray
from spec_cascades.models.t5.model import BOS_ID, T5Config

# --- T5X's tree, which is ours ---


def to_ours(found: Arrays) -> Arrays:
    """Brings any of T5X's trees, scanned or not, to our names and shapes."""
    return arrays.flatten(scanned.to_per_layer(arrays.unflatten(found)))


def config_from_shapes(found: Arrays, where: str) -> T5Config:
    """The sizes that a tree in our form must have.

    What shapes do not say follows T5's custom: one `wi` means relu, two mean gated gelu.

    Raises:
        ValueError: the tree is not a T5's; names what it lacks.
    """

    def shape(name: str) -> tuple[int, ...]:
        if name not in found:
            hint = ""
            if "decoder/token_embedder/embedding" in found:
                hint = " (it is a decoder without an encoder)"
            elif not any("token_embedder" in other for other in found):
                hint = f" (it has {arrays.some(sorted(found), 3)})"
            raise ValueError(f"{where} is not a T5's: it has no {name}{hint}")
        if len(found[name].shape) != 2:
            raise ValueError(f"{found[name].label} has the shape {found[name].shape}, not a matrix")
        return found[name].shape

    shared = "encoder/relpos_bias/rel_embedding" in found
    gated = "encoder/layers_0/mlp/wi_0/kernel" in found
    vocab_size, emb_dim = shape("token_embedder/embedding")
    own = "" if shared else "layers_0/"
    num_heads, num_buckets = shape(f"encoder/{own}relpos_bias/rel_embedding")
    joined = shape("encoder/layers_0/attention/query/kernel")[1]
    if joined % num_heads:
        raise ValueError(f"{where}: {num_heads} heads do not divide the {joined} query features")
    return T5Config(
        vocab_size=vocab_size,
        emb_dim=emb_dim,
        num_heads=num_heads,
        head_dim=joined // num_heads,
        mlp_dim=shape(f"encoder/layers_0/mlp/{'wi_0' if gated else 'wi'}/kernel")[1],
        num_encoder_layers=_depth(found, "encoder"),
        num_decoder_layers=_depth(found, "decoder"),
        mlp_activations=("gelu", "linear") if gated else ("relu",),
        logits_via_embedding="decoder/logits_dense/kernel" not in found,
        relative_attention_num_buckets=num_buckets,
        shared_relative_bias=shared,
    )


def _depth(found: Arrays, stack: str) -> int:
    layers = (re.match(rf"{stack}/layers_(\d+)/", name) for name in found)
    return 1 + max((int(layer[1]) for layer in layers if layer), default=0)


# --- Hugging Face ---

MODEL_TYPES = ("t5", "mt5", "umt5")
_ACTIVATIONS = {
    "relu": ("relu",),
    "gelu_new": ("gelu",),
    "gated-relu": ("relu", "linear"),
    "gated-gelu": ("gelu", "linear"),
    "gated-gelu_new": ("gelu", "linear"),
}
# Names of ours below a layer -> theirs below a block; {last} is the MLP's place in it.
_LAYER_PARTS = {
    r"(?:self_)?attention/(query|key|value|out)/kernel": "layer.0.SelfAttention.{0}.weight",
    r"encoder_decoder_attention/(query|key|value|out)/kernel": "layer.1.EncDecAttention.{0}.weight",
    r"relpos_bias/rel_embedding": "layer.0.SelfAttention.relative_attention_bias.weight",
    r"mlp/(wi|wi_0|wi_1|wo)/kernel": "layer.{last}.DenseReluDense.{0}.weight",
    r"pre_(?:self_)?attention_layer_norm/scale": "layer.0.layer_norm.weight",
    r"pre_cross_attention_layer_norm/scale": "layer.1.layer_norm.weight",
    r"pre_mlp_layer_norm/scale": "layer.{last}.layer_norm.weight",
}
_EMBEDDING = "shared.weight"
_LOGITS = "lm_head.weight"
_EMBEDDING_ALIASES = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
# Of no effect; the oldest published files have it.
_IGNORED = ("decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight",)


def is_transposed(name: str) -> bool:
    """Whether Hugging Face stores the transpose of our parameter (linear layers: [out, in])."""
    return name.endswith(("/kernel", "/rel_embedding"))


def their_name(name: str) -> str:
    """Hugging Face's name of our parameter."""
    if name == "token_embedder/embedding":
        return _EMBEDDING
    if name == "decoder/logits_dense/kernel":
        return _LOGITS
    stack, rest = name.split("/", 1)
    if rest == f"{stack}_norm/scale":
        return f"{stack}.final_layer_norm.weight"
    if rest == "relpos_bias/rel_embedding":  # One table a stack: the first layer's.
        rest = f"layers_0/{rest}"
    layer, part = rest.split("/", 1)
    last = 1 if stack == "encoder" else 2
    for pattern, theirs in _LAYER_PARTS.items():
        if match := re.fullmatch(pattern, part):
            groups = [g[0] if "attention" in part else g for g in match.groups()]
            block = layer.removeprefix("layers_")
            return f"{stack}.block.{block}.{theirs.format(*groups, last=last)}"
    raise ValueError(f"no Hugging Face name for the parameter {name}")


def without_aliases(stored: Arrays, config: Mapping[str, Any]) -> dict[str, LazyArray]:
    """Drops second names of shared tensors, whichever of them are stored.

    Copies are compared with the tensor that stays: their shapes here, their numbers when it is
    read (see `_with_copy`).

    Args:
        stored: by their names.
        config: theirs.

    Raises:
        ValueError: tensors that must be one have different shapes.
    """
    stored = {name: array for name, array in stored.items() if name not in _IGNORED}
    aliases = [stored.pop(name) for name in _EMBEDDING_ALIASES if name in stored]
    if _EMBEDDING not in stored and aliases:
        stored[_EMBEDDING] = aliases.pop(0)
    embedding = stored.get(_EMBEDDING)
    if embedding is not None:
        for alias in aliases:
            stored[_EMBEDDING] = _with_copy(stored[_EMBEDDING], alias, "but a T5 has one embedding")
    if _scales_logits(config):
        if _LOGITS in stored and embedding is not None:
            reason = "which tie_word_embeddings in config.json says it is"
            stored[_EMBEDDING] = _with_copy(stored[_EMBEDDING], stored.pop(_LOGITS), reason)
    elif config.get("tie_word_embeddings") is not False and embedding is not None:
        # Not scaled, but tied unless both are stored: so transformers 5 makes new models.
        stored.setdefault(_LOGITS, embedding)
    return stored


def _with_copy(array: LazyArray, copy: LazyArray, reason: str) -> LazyArray:
    """The array, which raises ValueError on reading a part that `copy` has otherwise."""
    message = f"{copy.label} differs from {array.label.rsplit(' ')[-1]}, {reason}"
    if copy.shape != array.shape:
        raise ValueError(message)

    def read(index: arrays.Index) -> np.ndarray:
        part = array.read(index)
        if not np.array_equal(part, copy.read(index)):
            raise arrays.CopiesDiffer(message)
        return part

    return dataclasses.replace(array, read=read)


def config_from_json(config: Mapping[str, Any], file: str) -> T5Config:
    """Our configuration from Hugging Face's `config.json`.

    Raises:
        ValueError: a setting is missing, or is one that our T5 does not have.
    """
    fixed = {
        "layer_norm_epsilon": 1e-6,
        "decoder_start_token_id": BOS_ID,
        "pad_token_id": 0,
        "eos_token_id": 1,
    }
    for key, only in fixed.items():
        if config.get(key, only) != only:
            raise ValueError(f"{file}: {key} is {config[key]}; only {only} is supported")
    projection = config.get("feed_forward_proj", "relu")
    if not isinstance(projection, str) or projection not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise ValueError(f"{file}: feed_forward_proj is {projection!r}; supported: {known}")

    def size(key: str, default: int | None = None) -> int:
        value = config.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ValueError(f"{file}: {key} is {value!r}; a positive integer is expected")
        return value

    return T5Config(
        vocab_size=size("vocab_size"),
        emb_dim=size("d_model"),
        num_heads=size("num_heads"),
        head_dim=size("d_kv"),
        mlp_dim=size("d_ff"),
        num_encoder_layers=size("num_layers"),
        num_decoder_layers=size("num_decoder_layers", size("num_layers")),
        mlp_activations=_ACTIVATIONS[projection],
        logits_via_embedding=_scales_logits(config),
        relative_attention_num_buckets=size("relative_attention_num_buckets", 32),
        relative_attention_max_distance=size("relative_attention_max_distance", 128),
        shared_relative_bias=config.get("model_type") != "umt5",
    )


def _scales_logits(config: Mapping[str, Any]) -> bool:
    """Whether logits are those of T5 1.0: the embedding, scaled by d_model ** -0.5.

    `tie_word_embeddings` says so, and is true where it is absent. transformers 5 writes it as true
    for every model, and the scaling apart from it; no mT5 has scaled logits.
    """
    if config.get("model_type") == "mt5":
        return False
    return config.get("scale_decoder_outputs", config.get("tie_word_embeddings") is not False)


def config_to_json(config: T5Config, dtype: str) -> dict[str, Any]:
    """Hugging Face's `config.json` of our T5.

    Raises:
        ValueError: transformers has no such T5.
    """
    names = {activations: name for name, activations in reversed(_ACTIVATIONS.items())}
    if config.mlp_activations not in names:
        raise ValueError(f"transformers has no T5 with mlp_activations={config.mlp_activations}")
    own = not config.shared_relative_bias
    return {
        "architectures": [f"{'UMT5' if own else 'T5'}ForConditionalGeneration"],
        "model_type": "umt5" if own else "t5",
        "vocab_size": config.vocab_size,
        "d_model": config.emb_dim,
        "d_kv": config.head_dim,
        "d_ff": config.mlp_dim,
        "num_heads": config.num_heads,
        "num_layers": config.num_encoder_layers,
        "num_decoder_layers": config.num_decoder_layers,
        "feed_forward_proj": names[config.mlp_activations],
        "tie_word_embeddings": config.logits_via_embedding,
        "relative_attention_num_buckets": config.relative_attention_num_buckets,
        "relative_attention_max_distance": config.relative_attention_max_distance,
        "layer_norm_epsilon": 1e-6,
        "dropout_rate": config.dropout_rate,
        "is_encoder_decoder": True,
        "use_cache": True,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "decoder_start_token_id": BOS_ID,
        "dtype": dtype,
    }
