"""The search for a preset: named changes to the settings -> their scores on data that no test fold holds."""
