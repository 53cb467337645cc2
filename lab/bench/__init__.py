"""Speed beside peers (``python -m lab bench``), and scripts that measure one thing (``python -m lab measure``)."""
