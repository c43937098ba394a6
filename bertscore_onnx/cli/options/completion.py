"""Completes what a shell asks for, beside options and files: names of models."""


def complete_model(incomplete: str) -> list[str]:
    """Return the models whose name begins so: those of the catalogue, and those with a bundle here."""
    from bertscore_onnx.bundle import catalogue
    from bertscore_onnx.bundle.resolver import installed_models

    names = dict.fromkeys((*installed_models(), *catalogue.entries()))
    return [name for name in names if name.lower().startswith(incomplete.lower())]
