"""The script that Streamlit runs for every visitor and on every rerun."""

from app import router

router.show()
