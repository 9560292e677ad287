"""What rays meet: the sea bed, meshes, simple shapes, and bodies that move."""
