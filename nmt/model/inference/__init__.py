"""The same models in the form that translates fastest on a processor: built from their weights, never trained."""
