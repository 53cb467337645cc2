"""Graphs + settings -> a trained model: split, fit the encoder, build, train, calibrate, write the run folder."""
