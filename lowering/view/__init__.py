"""Pictures of modules: graphs of functions, loop nests of kernels, memory plans; as HTML, SVG or DOT."""
