"""What is stored, as JSON text: states, specs, observations.

Every text carries the version of its form. One that is damaged or newer raises
`CheckpointError` saying what is wrong, and is never guessed at.
"""

from __future__ import annotations

from tarry.codec.answers import (
    ANSWER_LIMIT,
    decode_answer,
    decode_status_url,
    decode_validators,
    encode_answer,
    encode_status_url,
    encode_validators,
)
from tarry.codec.observations import (
    BODY_LIMIT,
    decode_observation,
    encode_observation,
    what_it_says,
)
from tarry.codec.reading import VERSION
from tarry.codec.rows import state_of
from tarry.codec.specs import decode_spec, differences, encode_spec, fingerprint
from tarry.codec.states import decode_state, encode_state
from tarry.codec.timeline import decode_timeline, extended_timeline

__all__ = [
    "ANSWER_LIMIT",
    "BODY_LIMIT",
    "VERSION",
    "decode_answer",
    "decode_observation",
    "decode_spec",
    "decode_state",
    "decode_status_url",
    "decode_timeline",
    "decode_validators",
    "differences",
    "encode_answer",
    "encode_observation",
    "encode_spec",
    "encode_state",
    "encode_status_url",
    "encode_validators",
    "extended_timeline",
    "fingerprint",
    "state_of",
    "what_it_says",
]
