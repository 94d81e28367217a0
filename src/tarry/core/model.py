"""The base of everything in a spec: frozen, strict about names, clear about errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from tarry.errors import SpecError


class Model(BaseModel):
    """A frozen value that refuses unknown names and raises `SpecError`.

    Arguments may be given by position in the order of `_positional`.
    `model_fields_set` holds what the caller wrote, plus the `type` tag of a
    member of a union, so that a dump of what was set can be loaded again.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        allow_inf_nan=False,
        serialize_by_alias=True,
        validate_by_name=True,
        validate_by_alias=True,
    )

    _positional: ClassVar[tuple[str, ...]] = ()

    def __init__(self, /, *args: Any, **data: Any) -> None:
        name = type(self).__name__
        if len(args) > len(self._positional):
            raise SpecError(name, f"takes {len(self._positional)} positional arguments, got {len(args)}")
        for field, value in zip(self._positional, args, strict=False):
            if field in data:
                raise SpecError(f"{name}.{field}", "given twice, by position and by name")
            data[field] = value
        tag = type(self).model_fields.get("type")
        if tag is not None:
            data.setdefault("type", tag.default)
        try:
            super().__init__(**data)
        except ValidationError as error:
            raise SpecError.of(type(self), error) from None

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """As pydantic's, but what was derived from the values (`cached_property`) is derived anew."""
        copy = super().model_copy(update=update, deep=deep)
        values = vars(copy)
        for name in values.keys() - type(self).model_fields.keys():
            del values[name]
        return copy

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """As pydantic's, but raises `SpecError`."""
        try:
            return super().model_validate(obj, **options)
        except ValidationError as error:
            raise SpecError.of(cls, error) from None

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """As pydantic's, but raises `SpecError`."""
        try:
            return super().model_validate_json(json_data, **options)
        except ValidationError as error:
            raise SpecError.of(cls, error) from None
