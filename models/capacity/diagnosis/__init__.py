"""What bounds a job: facts of its operators in, the vertex that binds with cause and remedy out."""
