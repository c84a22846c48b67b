"""Answers of a Hugging Face folder, by transformers alone.

    python transformers_generate.py FOLDER LENGTH TEXT... -> JSON lines {"inputs", "output", "text"}

A process of its own: TensorFlow, which SeqIO imports, and torch's triton do not get along in one.
"""

import json
import sys

import torch
import transformers


def main():
    folder, length, *texts = sys.argv[1:]
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
    for text in texts:
        inputs = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            output = model.generate(
                **inputs, do_sample=False, num_beams=1, max_new_tokens=int(length)
            )
        line = {
            "inputs": inputs.input_ids[0].tolist(),
            "output": output[0].tolist(),
            "text": tokenizer.decode(output[0], skip_special_tokens=True),
        }
        print(json.dumps(line))


if __name__ == "__main__":
    main()
