"""A toy task of questions with several continuations, for models/tiny-stories."""

TASK = [
    ("Once upon a time, a little girl named Mia had a ", ["red ball.", "red mountain of the sea.", "dog", "silver toy boat."]),
    ("Once upon a time", [", a small girl lived in the meadow.", ", a small girl lived in the castle."]),
    ("The sky turned black and the wind grew", [" wild.", " cheese."]),
    ("Tom was sad because", [" he lost his kite.", " he could not find his kite"]),
    ("Then someone knocked. It was", [" Oscar, a patient tailor who lived next door.", " a"]),
]
