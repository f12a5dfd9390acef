"""The loops of the simulator, and the recorder that they share."""
