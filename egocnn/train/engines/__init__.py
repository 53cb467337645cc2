"""How the epochs of a training are computed: plainly, in steps recorded on a GPU, or by several processes."""
