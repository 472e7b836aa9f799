"""Text from language models: one GGUF file in, tokens out.

::

    from lowering.generation.language_model import LanguageModel

    model = LanguageModel.load("model.gguf")
    print(model.generate("The capital of France is", max_tokens=32).text)
"""
