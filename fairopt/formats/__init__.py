def load(p):
    raise NotImplementedError


def save(p):
    raise NotImplementedError
