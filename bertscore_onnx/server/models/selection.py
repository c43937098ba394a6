"""What one request asks for: a model, an idf table and a rescaling."""

from collections.abc import Hashable
from dataclasses import replace

from bertscore_onnx.matching.weights import Rescaling
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Pairs
from bertscore_onnx.server.models.model import Model
from bertscore_onnx.server.requests.errors import ApiError


class Selection:
    """The model, the idf table and the rescaling that one request asks for."""

    def __init__(self, model: Model, idf: str | None, rescale: str | bool | None) -> None:
        """Find what a request asks for.

        Raises:
            ApiError: 422: the model does not have it.
        """
        if rescale is True:
            raise ApiError(422, "invalid", '`rescale` is true; expected a language, such as "en", or false.')
        language = rescale.lower() if rescale else "no"
        if rescale and language not in model.baselines:
            known = ", ".join(sorted(model.baselines)) or "none"
            raise ApiError(422, "unknown_baseline", f"{model.name} has no baseline for {rescale!r}; it has: {known}.")
        self.model = model
        self.slot = model.slot(idf)
        self._rescaling = Rescaling(language, tuple(model.baselines.get(language, ())))
        self.signature = str(replace(self.slot.scorer.signature, rescale=language))
        """That of a `BERTScorer` with the same settings."""

    async def score(self, pairs: Pairs, deadline: float, client: Hashable = None) -> Scores:
        """Score tokenised pairs, in batches with those of other requests.

        Raises:
            BertScoreOnnxError: as `MicroBatcher.score_pairs` says.
        """
        raw = await self.slot.batcher.score_pairs(pairs, deadline=deadline, client=client)
        return self._rescaling.apply(raw)
