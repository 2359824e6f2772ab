"""Pure figure builders: arrays and labels in, plotly figures out. No streamlit, no torch."""
