"""Settings to try + graphs -> the settings in order of merit, judged without a look at the test folds."""
