"""Predictions and critical structures -> what people look at: tables, pictures, pages, a page that answers."""
