"""The same T5 in transformers (needs torch): reference of the golden values and live tests."""

import numpy as np
import torch
import transformers

from spec_cascades.models.t5 import T5Config


def build(config: T5Config, params) -> transformers.T5ForConditionalGeneration:
    """A transformers model in evaluation mode with the parameters of ours."""
    gated = len(config.mlp_activations) > 1
    model = transformers.T5ForConditionalGeneration(
        transformers.T5Config(
            vocab_size=config.vocab_size,
            d_model=config.emb_dim,
            d_kv=config.head_dim,
            num_heads=config.num_heads,
            d_ff=config.mlp_dim,
            num_layers=config.num_encoder_layers,
            num_decoder_layers=config.num_decoder_layers,
            feed_forward_proj="gated-gelu" if gated else "relu",
            tie_word_embeddings=config.logits_via_embedding,
            relative_attention_num_buckets=config.relative_attention_num_buckets,
            relative_attention_max_distance=config.relative_attention_max_distance,
            decoder_start_token_id=0,
        )
    )
    state = _state(config, params)
    if not config.logits_via_embedding:
        # transformers 5 ties the two when the model is built; T5 1.1 has two matrices.
        model.lm_head.weight = torch.nn.Parameter(torch.empty_like(model.lm_head.weight))
    missing, unexpected = model.load_state_dict(state, strict=False)
    tied = {"encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "lm_head.weight"}
    assert not unexpected and set(missing) <= tied - set(state), (missing, unexpected)
    return model.eval()


def logits(model, inputs: np.ndarray, decoder_inputs: np.ndarray) -> np.ndarray:
    """Teacher-forced logits [batch, length, vocab] float32."""
    ids = torch.from_numpy(np.asarray(inputs, np.int64))
    with torch.no_grad():
        output = model(
            input_ids=ids,
            attention_mask=(ids > 0).long(),
            decoder_input_ids=torch.from_numpy(np.asarray(decoder_inputs, np.int64)),
        )
    return output.logits.numpy()


def _state(config: T5Config, params) -> dict[str, torch.Tensor]:
    state = {"shared.weight": params["token_embedder"]["embedding"]}
    if not config.logits_via_embedding:
        state["lm_head.weight"] = params["decoder"]["logits_dense"]["kernel"].T

    def attention(prefix, ours):
        for short, name in (("q", "query"), ("k", "key"), ("v", "value"), ("o", "out")):
            state[f"{prefix}.{short}.weight"] = ours[name]["kernel"].T

    def mlp(prefix, ours):
        for name, branch in ours.items():
            state[f"{prefix}.DenseReluDense.{name}.weight"] = branch["kernel"].T

    for stack, depth in (
        ("encoder", config.num_encoder_layers),
        ("decoder", config.num_decoder_layers),
    ):
        ours = params[stack]
        state[f"{stack}.final_layer_norm.weight"] = ours[f"{stack}_norm"]["scale"]
        bias = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        state[bias] = ours["relpos_bias"]["rel_embedding"].T
        for i in range(depth):
            layer, block = ours[f"layers_{i}"], f"{stack}.block.{i}.layer"
            if stack == "encoder":
                parts = [("SelfAttention", "attention", "pre_attention_layer_norm")]
            else:
                parts = [
                    ("SelfAttention", "self_attention", "pre_self_attention_layer_norm"),
                    (
                        "EncDecAttention",
                        "encoder_decoder_attention",
                        "pre_cross_attention_layer_norm",
                    ),
                ]
            for j, (theirs, name, norm) in enumerate(parts):
                attention(f"{block}.{j}.{theirs}", layer[name])
                state[f"{block}.{j}.layer_norm.weight"] = layer[norm]["scale"]
            mlp(f"{block}.{len(parts)}", layer["mlp"])
            norm = layer["pre_mlp_layer_norm"]["scale"]
            state[f"{block}.{len(parts)}.layer_norm.weight"] = norm
    return {name: torch.from_numpy(np.array(array)) for name, array in state.items()}
