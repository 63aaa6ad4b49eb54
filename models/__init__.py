"""The science of Sluice: pure Python, with no orchestrator, engine, tracker, server, file or clock in it.

Its thirteen loose files are what all of its folders share: the formats, errors, words and compiled functions.
"""
