"""Rows as Streamlit sends them: its own way there, through a data frame, costs a run three milliseconds."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa


def table(rows: Sequence[Mapping[str, object]]) -> Any:  # noqa: ANN401 - a pyarrow.Table, which has no types
    """Rows of the same columns, for ``st.dataframe``.

    Raises:
        pyarrow.ArrowInvalid: if a column holds both words and numbers.
    """
    return pa.Table.from_pylist([*map(dict, rows)])
