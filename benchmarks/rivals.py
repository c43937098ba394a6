"""BERTScore as a good engineer writes it in an hour: a script on ONNX Runtime, and one in PyTorch
for a GPU.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

BATCH_TOKENS = 16_384  # of a run on a GPU; and of the two sides of pairs that are matched together
MAX_LENGTH = 512

Rows = list[Any]  # the ids of each text, (tokens,)


class Script:
    """Scores with the graph of a bundle: each different text once, in batches of like lengths."""

    def __init__(self, path: str, *, tokenizer: str) -> None:
        """Load the graph, and the fast tokenizer of the model."""
        from onnxruntime import InferenceSession
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(tokenizer)
        self._tokenizer.enable_truncation(MAX_LENGTH)
        self._tokenizer.no_padding()
        first_step = self._tokenizer.pre_tokenizer
        if hasattr(first_step, "add_prefix_space"):  # of RoBERTa, as in bert-score
            first_step.add_prefix_space = True
            self._tokenizer.pre_tokenizer = first_step
        self._session = InferenceSession(f"{path}/model.onnx", providers=["CPUExecutionProvider"])

    def score(
        self, candidates: list[str], references: list[str]
    ) -> tuple[list[float], list[float], list[float]]:
        """Return P, R and F of each pair."""
        texts = list(dict.fromkeys([*candidates, *references]))
        encodings = self._tokenizer.encode_batch(texts)
        vectors = dict(zip(texts, self._encode(encodings), strict=True))
        words = {
            text: np.array(one.special_tokens_mask) == 0
            for text, one in zip(texts, encodings, strict=True)
        }
        scores = []
        for candidate, reference in zip(candidates, references, strict=True):
            similarity = vectors[candidate] @ vectors[reference].T  # (cand_tokens, ref_tokens)
            precision = float(similarity.max(1)[words[candidate]].mean())
            recall = float(similarity.max(0)[words[reference]].mean())
            scores.append((precision, recall, 2 * precision * recall / (precision + recall)))
        precisions, recalls, f1 = map(list, zip(*scores, strict=True))
        return precisions, recalls, f1

    def _encode(self, encodings: list[Any]) -> list[Any]:
        """Return the unit vectors of each text, (tokens, hidden)."""
        order = sorted(range(len(encodings)), key=lambda row: len(encodings[row].ids))
        vectors: list[Any] = [None] * len(encodings)
        for start in range(0, len(order), 64):
            batch = order[start : start + 64]
            width = len(encodings[batch[-1]].ids)
            ids, mask = np.zeros((2, len(batch), width), np.int64)
            for row, text in enumerate(batch):
                ids[row, : len(encodings[text].ids)] = encodings[text].ids
                mask[row, : len(encodings[text].ids)] = 1
            [hidden] = self._session.run(None, {"input_ids": ids, "attention_mask": mask})
            hidden /= np.linalg.norm(hidden, axis=2, keepdims=True)
            for row, text in enumerate(batch):
                vectors[text] = hidden[row, : len(encodings[text].ids)]
        return vectors


class TorchScorer:
    """Scores with transformers' model in one precision: each different text once, the longest
    first.

    With `unpadded` the texts of a batch lie one after the other, and attention knows where each
    begins: it is FlashAttention-2 where that is installed, else PyTorch's own. On a CPU, where
    there is neither, texts take turns.
    """

    def __init__(
        self,
        path: str,
        *,
        device: str,
        num_layers: int,
        dtype: str = "float16",
        unpadded: bool = False,
    ) -> None:
        """Load the model, cut at a layer."""
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        self._torch, self._device = torch, device
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(
            path, add_prefix_space=True
        )  # as bert-score for RoBERTa
        kind = getattr(torch, dtype)
        model = transformers.AutoModel.from_pretrained(path, attn_implementation="sdpa", dtype=kind)
        model.pooler, model.config.use_cache = None, False
        holder, name = (model.encoder, "layer") if hasattr(model, "encoder") else (model, "layers")
        setattr(holder, name, getattr(holder, name)[:num_layers])
        self._model = model.to(device).eval()
        self._special = torch.tensor(
            [
                self._tokenizer.cls_token_id,
                self._tokenizer.sep_token_id,
                self._tokenizer.pad_token_id,
            ],
            device=device,
        )
        self._run = self._run_unpadded if unpadded else self._run_padded
        self._bounds: Any = None  # of the texts in an unpadded run, and the longest of them
        if unpadded:
            self._replace_attention()

    def score(
        self, candidates: list[str], references: list[str]
    ) -> tuple[list[float], list[float], list[float]]:
        """Return P, R and F of each pair."""
        torch = self._torch
        texts = list(dict.fromkeys([*candidates, *references]))
        row = {text: number for number, text in enumerate(texts)}
        longest = min(self._tokenizer.model_max_length, MAX_LENGTH)
        ids = [
            torch.tensor(ids)
            for ids in self._tokenizer(texts, truncation=True, max_length=longest)["input_ids"]
        ]
        sides = [torch.tensor([row[text] for text in side]) for side in (candidates, references)]
        with torch.inference_mode():
            self._encode(ids)
            scores = torch.zeros((3, len(candidates)), device=self._device)
            for batch in self._batches(
                (self._lengths[sides[0]] + self._lengths[sides[1]]).tolist()
            ):
                scores[:, batch] = self._match(*(side[batch] for side in sides))
        precision, recall, f1 = scores.tolist()
        return precision, recall, f1

    def _encode(self, texts: Rows) -> None:
        """Keep the unit vectors of all tokens, those of a text one after the other, and what each
        token weighs.
        """
        torch = self._torch
        self._lengths = torch.tensor([len(ids) for ids in texts])
        self._starts = torch.zeros_like(self._lengths)
        vectors, in_order, end = [], [], 0
        for batch in self._batches(self._lengths.tolist()):
            chosen = [texts[text] for text in batch]
            vectors.append(torch.nn.functional.normalize(self._run(chosen), dim=-1))
            in_order += chosen
            ends = end + self._lengths[batch].cumsum(0)
            self._starts[batch] = ends - self._lengths[batch]
            end = int(ends[-1])
        self._vectors = torch.cat(vectors)  # (tokens, hidden)
        # (tokens,)
        self._weights = (~torch.isin(torch.cat(in_order).to(self._device), self._special)).float()

    def _match(self, *texts: Any) -> Any:
        """Return P, R and F of pairs, given the texts of each side, (pairs,)."""
        torch = self._torch
        sides, weights, masks = [], [], []
        for of_side in texts:
            lengths = self._lengths[of_side]
            places = torch.arange(int(lengths.max()))
            tokens = (self._starts[of_side][:, None] + places.clamp(max=lengths[:, None] - 1)).to(
                self._device
            )
            masks.append((places < lengths[:, None]).to(self._device))
            sides.append(self._vectors[tokens])
            weights.append(self._weights[tokens] * masks[-1])
        # (pairs, cand_tokens, ref_tokens)
        similarity = torch.bmm(sides[0], sides[1].transpose(1, 2)).float()
        similarity.masked_fill_(~(masks[0][:, :, None] & masks[1][:, None]), -1)
        best = (similarity.amax(2), similarity.amax(1))
        precision, recall = (
            (values * weight).sum(1) / weight.sum(1).clamp(min=1)
            for values, weight in zip(best, weights, strict=True)
        )
        return torch.stack(
            [precision, recall, (2 * precision * recall / (precision + recall)).nan_to_num()]
        )

    def _batches(self, lengths: list[int]) -> Iterator[list[int]]:
        """Yield the numbers of texts of like length, the longest first."""
        order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
        start = 0
        while start < len(order):
            size = max(1, BATCH_TOKENS // lengths[order[start]])
            yield order[start : start + size]
            start += size

    def _run_padded(self, texts: Rows) -> Any:
        """Return the vectors of all tokens, (tokens, hidden)."""
        torch = self._torch
        pad_id = self._tokenizer.pad_token_id
        ids = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True, padding_value=pad_id).to(
            self._device
        )
        lengths = torch.tensor([len(text) for text in texts])
        mask = (torch.arange(ids.shape[1]) < lengths[:, None]).to(self._device)
        return self._model(input_ids=ids, attention_mask=mask.long()).last_hidden_state[mask]

    def _run_unpadded(self, texts: Rows) -> Any:
        """Return the vectors of all tokens, (tokens, hidden)."""
        torch, embeddings = self._torch, self._model.embeddings
        lengths = [len(text) for text in texts]
        first = 0 if self._model.config.model_type == "bert" else embeddings.padding_idx + 1
        ids = torch.cat(texts).to(self._device)[None]
        positions = torch.cat([torch.arange(first, first + length) for length in lengths]).to(
            self._device
        )[None]
        ends = torch.tensor([0, *lengths]).cumsum(0)
        self._bounds = ends.to(self._device, torch.int32), max(lengths)
        hidden = embeddings(
            input_ids=ids, position_ids=positions, token_type_ids=torch.zeros_like(ids)
        )
        for layer in self._model.encoder.layer:
            hidden = layer(hidden)[0]
        return hidden[0]

    def _replace_attention(self) -> None:
        """Let every layer attend within the texts of an unpadded run."""
        attend = _varlen_attention(self._device)

        class Attention(self._torch.nn.Module):  # type: ignore[name-defined,misc]  # the class exists at run time only
            def __init__(self, given: Any, owner: "TorchScorer") -> None:
                super().__init__()
                self.query, self.key, self.value = given.query, given.key, given.value
                self.heads, self.owner = given.num_attention_heads, owner

            def forward(self, hidden: Any, *_: Any, **__: Any) -> tuple[Any]:
                split = [
                    part(hidden[0]).unflatten(-1, (self.heads, -1))
                    for part in (self.query, self.key, self.value)
                ]
                return (attend(*split, *self.owner._bounds).flatten(-2)[None],)

        for layer in self._model.encoder.layer:
            layer.attention.self = Attention(layer.attention.self, self)


def _varlen_attention(device: str) -> Callable[..., Any]:
    """Return attention over (tokens, heads, dimensions) of texts one after the other, given their
    bounds.
    """
    import torch

    if device == "cpu":

        def attend(query: Any, key: Any, value: Any, bounds: Any, longest: int) -> Any:
            lengths = bounds.diff().tolist()
            parts = [part.transpose(0, 1).split(lengths, 1) for part in (query, key, value)]
            attended = map(torch.nn.functional.scaled_dot_product_attention, *parts)
            return torch.cat([part.transpose(0, 1) for part in attended])

        return attend
    try:
        function = import_module("flash_attn").flash_attn_varlen_func
    except ModuleNotFoundError:
        function = import_module("torch.nn.attention.varlen").varlen_attn
    return lambda query, key, value, bounds, longest: function(
        query, key, value, bounds, bounds, longest, longest
    )
