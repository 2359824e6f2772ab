"""Functions that draw charts: they take arrays and labels and return plotly figures, without Streamlit or torch."""
