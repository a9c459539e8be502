from training import Training

GPUS = 2

Training("train", GPUS)
