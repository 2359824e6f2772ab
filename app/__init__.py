"""The Streamlit app: everything that several pages share. It contains no tensor mathematics; see ``attention_core``."""
