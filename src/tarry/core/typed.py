"""Typed results: the output of a job as a type of the caller's."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from tarry.core.results import JobResult
from tarry.core.texts import as_json_text
from tarry.errors import ResultInvalid, SpecError

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    Output = TypeVarWithDefault("Output", default=Any)
else:
    Output = TypeVar("Output")
"""What the output of a job is: any JSON, or what `output_type` says."""

OutputType: TypeAlias = type[Output] | TypeAdapter[Output]
"""A model, a dataclass, a TypedDict, `list[int]`, …; or a `TypeAdapter` for what is no class, such as a union."""


def adapter_of(output_type: OutputType[Output] | None) -> TypeAdapter[Output] | None:
    """What validates an output; None where any will do. Raises `SpecError` for what pydantic cannot validate."""
    if output_type is None or isinstance(output_type, TypeAdapter):
        return output_type
    try:
        return TypeAdapter(output_type)
    except (PydanticUserError, TypeError, NameError) as error:
        reason = str(error).partition("\n")[0]
        raise SpecError("output_type", f"not a type that an output can be validated with: {reason}") from error


def typed(result: JobResult[Any], adapter: TypeAdapter[Output] | None) -> JobResult[Output]:
    """The result with its output validated, as JSON is. Raises `ResultInvalid` that says where it does not fit."""
    if adapter is None:
        return result
    try:
        return replace(result, output=adapter.validate_json(as_json_text(result.output)))
    except ValidationError as error:
        first, *others = error.errors(include_url=False, include_input=False, include_context=False)
        path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in first["loc"])
        more = f" (and {len(others)} more)" if others else ""
        raise ResultInvalid(result.key, path.lstrip("."), f"{first['msg']}{more}", result) from error
