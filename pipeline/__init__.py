"""gpufare: dollars per finished training job, from the providers' own price pages."""
