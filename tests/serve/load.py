TRIALS = {}
