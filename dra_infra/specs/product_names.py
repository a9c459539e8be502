"""The products that `gpu=` means, by the names that people use."""

from __future__ import annotations

from dra_infra.catalog.gpus import find_products, nearest_product
from dra_infra.errors import Problem
from dra_infra.specs.arguments import PLAIN_HINT, is_output, wrong_type


def read_products(written: object, *, example: str) -> tuple[list[Problem], tuple[str, ...]]:
    """The products that *written* means; one name may stand for several.

    Args:
        written: As the user gave it: an NVML name or a short one.
        example: What hints show.

    Returns:
        Problems with codes `wrong-type` and `product-not-known` at `gpu`; NVML names, none where there are problems.
    """
    if not isinstance(written, str):
        hint = PLAIN_HINT if is_output(written) else f'write gpu="{example}"'
        return [wrong_type("gpu", written, "the name of a GPU", hint)], ()
    found = find_products(written)
    if found:
        return [], found
    near = nearest_product(written)
    hint = f'did you mean "{near}"?' if near else "`dra-infra catalog gpus` lists what is known"
    message = f"no GPU that is known here is called {written[:80]!r}"
    return [Problem(path="gpu", code="product-not-known", message=message, hint=hint)], ()
