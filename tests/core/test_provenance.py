"""When something was done, in words that sort."""

from datetime import UTC, datetime

from hypothesis import example, given
from hypothesis import strategies as st

from pairscale.core.provenance import utc_text


@given(st.floats(0, 4e9))
@example(0.0)
@example(1_700_000_000.999_999_9)
@example(1_700_000_000.000_000_5)
def test_a_moment_is_written_as_datetime_writes_it(seconds):
    text = utc_text(seconds)
    assert datetime.fromisoformat(text).isoformat(timespec="microseconds") == text
    slow = datetime.fromtimestamp(seconds, UTC)
    assert abs((datetime.fromisoformat(text) - slow).total_seconds()) <= 1.1e-6  # a half may be rounded either way
