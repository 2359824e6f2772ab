"""Pure figure builders: they take arrays and labels and return plotly figures, without Streamlit or torch."""
