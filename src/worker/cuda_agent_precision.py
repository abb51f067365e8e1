"""The precision of single-precision arithmetic in a worker: pinned, and read back."""

import torch


def fp32_flags():
    """The newer flags, by name: the object that has fp32_precision. Torch before 2.9 has none of them."""
    backends = torch.backends
    places = {
        "cuda.matmul": backends.cuda.matmul,
        "cudnn.conv": getattr(backends.cudnn, "conv", None),
        "cudnn.rnn": getattr(backends.cudnn, "rnn", None),
        "mkldnn.matmul": getattr(backends.mkldnn, "matmul", None),
        "mkldnn.conv": getattr(backends.mkldnn, "conv", None),
        "mkldnn.rnn": getattr(backends.mkldnn, "rnn", None),
    }
    return {name: place for name, place in places.items() if hasattr(place, "fp32_precision")}


def pin_precision(tf32):
    """The same precision for every arm, full unless TF32 was asked for; what was set is read back for the verdict."""
    torch.set_float32_matmul_precision("high" if tf32 else "highest")
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    for name, place in fp32_flags().items():
        place.fp32_precision = "tf32" if tf32 and not name.startswith("mkldnn") else "ieee"
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.set_default_dtype(torch.float32)
    return read_precision()


def read_precision():
    """The flags as torch reports them now."""
    matmul = torch.backends.cuda.matmul
    return {
        "float32_matmul_precision": torch.get_float32_matmul_precision(),
        "cuda.matmul.allow_tf32": str(matmul.allow_tf32),
        "cudnn.allow_tf32": str(torch.backends.cudnn.allow_tf32),
        "cuda.matmul.allow_fp16_reduced_precision_reduction": str(matmul.allow_fp16_reduced_precision_reduction),
        "cuda.matmul.allow_bf16_reduced_precision_reduction": str(matmul.allow_bf16_reduced_precision_reduction),
        "default_dtype": str(torch.get_default_dtype()),
        **{f"{name}.fp32_precision": str(place.fp32_precision) for name, place in fp32_flags().items()},
    }
