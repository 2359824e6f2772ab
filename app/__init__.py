"""The Streamlit app: the code that several pages share. It contains no tensor mathematics; see ``attention_core``."""
