"""Who and what the stories of grammar.py are about: names, animals, places, objects and what happens to them."""

SHE = ("Mia Lily Nora Ruby Hazel Ivy Clara Poppy Tilda Wren Luna Daisy Ella Maya Zoe Rosa Bella "
       "Olive Penny Freya Amber Junie Sofia Willa Greta Pearl").split()
HE = ("Tom Max Finn Leo Oscar Hugo Toby Milo Felix Otto Sam Ben Jasper Theo Rufo Arlo Kit Bruno "
      "Pip Casper Ned Emil Wally Gustav Rowan Anton").split()

# noun: (limbs, skill)
ANIMALS = {
    "fox": ("paws", "dig"), "rabbit": ("paws", "dig"), "mouse": ("paws", "dig"),
    "hedgehog": ("paws", "dig"), "badger": ("paws", "dig"), "mole": ("paws", "dig"),
    "puppy": ("paws", "dig"), "squirrel": ("paws", "climb"), "kitten": ("paws", "climb"),
    "raccoon": ("paws", "climb"), "monkey": ("hands", "climb"), "panda": ("paws", "climb"),
    "goat": ("hooves", "climb"), "lizard": ("feet", "climb"), "owl": ("wings", "fly"),
    "robin": ("wings", "fly"), "sparrow": ("wings", "fly"), "crow": ("wings", "fly"),
    "pigeon": ("wings", "fly"), "duck": ("wings", "swim"), "goose": ("wings", "swim"),
    "penguin": ("wings", "swim"), "frog": ("feet", "swim"), "turtle": ("feet", "swim"),
    "otter": ("paws", "swim"), "beaver": ("paws", "swim"), "bear": ("paws", "strong"),
    "donkey": ("hooves", "strong"), "pony": ("hooves", "strong"), "elephant": ("feet", "strong"),
    "lion": ("paws", "strong"), "giraffe": ("hooves", "tall"), "deer": ("hooves", "tall"),
    "camel": ("feet", "tall"),
}
PEOPLE = {k: ("hands", "person") for k in
          "baker gardener farmer sailor painter tailor teacher carpenter fisher miller".split()}
CHILD = {"she": "girl", "he": "boy"}
HERO_ADJ = "little small young curious cheerful shy brave gentle playful busy".split()
HELPER_ADJ = "wise kind old friendly clever patient calm quiet gentle helpful".split()

# the place, where one is in it, what one notices there, a high thing, hiding spots
PLACES = [
    ("the forest", "in the forest", "The leaves whispered in the wind.", "a tall pine tree",
     ["under a fallen log", "behind a mossy stone", "in a pile of leaves", "between the roots of an oak"]),
    ("the meadow", "in the meadow", "The grass was soft and full of flowers.", "an old apple tree",
     ["in the tall grass", "under a yellow bush", "behind the wooden fence", "next to a molehill"]),
    ("the lake", "by the lake", "The water was as smooth as glass.", "a willow tree",
     ["under the old boat", "among the reeds", "behind a round rock", "below the little dock"]),
    ("the village", "in the village", "Smoke rose from the chimneys.", "the roof of the church",
     ["behind the well", "under the market table", "next to the bakery door", "beside the stone steps"]),
    ("the farm", "on the farm", "The hens were clucking in the yard.", "the roof of the barn",
     ["under the hay", "behind the barn", "in the feed box", "beside the water trough"]),
    ("the beach", "on the beach", "The waves rolled in one by one.", "a tall palm tree",
     ["under the warm sand", "behind a pile of shells", "beside a wet rock", "under a striped towel"]),
    ("the valley", "in the valley", "A thin stream ran over the stones.", "a steep rock",
     ["behind a waterfall", "under a flat stone", "in a clump of ferns", "beside the stream"]),
    ("the garden", "in the garden", "Bees hummed around the roses.", "the garden wall",
     ["under the rose bush", "behind a flower pot", "in the cabbage bed", "beside the shed"]),
    ("the town", "in the town", "The streets were busy and bright.", "a lamp post",
     ["under a park bench", "behind the fountain", "next to the post box", "on the bakery step"]),
    ("the hill", "on the hill", "From there one could see very far.", "a lonely birch tree",
     ["under a thorn bush", "behind a gray boulder", "in a rabbit hole", "beside the windmill"]),
    ("the island", "on the island", "Gulls called above the shore.", "a coconut tree",
     ["in a sandy cave", "under a broken raft", "behind the lighthouse", "among the sea grass"]),
    ("the swamp", "near the swamp", "Green bubbles popped in the mud.", "a crooked tree",
     ["under a lily pad", "behind a rotten stump", "in the soft mud", "between the cattails"]),
    ("the mountain", "on the mountain", "The air was clear and cold.", "a high cliff",
     ["under a snowy bush", "behind an icy rock", "in a narrow crack", "beside the goat path"]),
    ("the river", "by the river", "The river sang its own small song.", "an alder tree",
     ["under the bridge", "behind a beaver dam", "in the wet pebbles", "beside the mill wheel"]),
    ("the harbor", "at the harbor", "Ropes creaked and flags waved.", "the mast of a ship",
     ["under a fishing net", "behind a barrel", "in an empty crate", "beside the anchor"]),
    ("the castle", "near the castle", "The old towers shone in the light.", "the castle tower",
     ["under the drawbridge", "behind the iron gate", "in the stable", "beside the moat"]),
    ("the orchard", "in the orchard", "The air smelled of ripe plums.", "a pear tree",
     ["under a fruit basket", "behind the cherry tree", "in the fallen leaves", "beside the beehive"]),
    ("the park", "in the park", "The paths were wide and clean.", "a chestnut tree",
     ["under the swing", "behind the statue", "in the sandbox", "beside the duck pond"]),
    ("the desert", "at the edge of the desert", "The sand glowed like gold.", "a giant cactus",
     ["under a dry bush", "behind a dune", "in an old clay pot", "beside the palm well"]),
    ("the jungle", "in the jungle", "Bright parrots chattered all day.", "a banana tree",
     ["under a huge leaf", "behind a curtain of vines", "in a hollow trunk", "beside the muddy path"]),
    ("the snow field", "near the snow field", "Everything was white and still.", "a frozen fir tree",
     ["under the fresh snow", "behind a snow hill", "in an ice hole", "beside the sled track"]),
    ("the school", "near the school", "A bell rang every hour.", "the school roof",
     ["under a desk", "behind the book shelf", "in the coat room", "beside the chalk box"]),
]

# noun: (material, what its owner loves to do)
OBJECTS = {
    "kite": ("cloth", "fly it on windy days"), "scarf": ("cloth", "wear it in the cold"),
    "blanket": ("cloth", "sit on it under the stars"), "hat": ("cloth", "wear it every day"),
    "cape": ("cloth", "play hero with it"), "flag": ("cloth", "wave it on the path"),
    "backpack": ("cloth", "fill it with treasures"), "tent": ("cloth", "sleep in it in summer"),
    "pillow": ("cloth", "rest on it at noon"), "doll": ("cloth", "tell stories to it"),
    "teddy bear": ("cloth", "hug it every night"), "sail": ("cloth", "watch it fill with wind"),
    "toy boat": ("wood", "let it float on the water"), "drum": ("wood", "play it loudly"),
    "flute": ("wood", "play sweet songs on it"), "cart": ("wood", "pull it up and down"),
    "spoon": ("wood", "stir soup with it"), "sled": ("wood", "ride it in winter"),
    "spinning top": ("wood", "watch it spin"), "puppet": ("wood", "make it dance"),
    "toy train": ("wood", "push it along the floor"), "fiddle": ("wood", "play it in the evening"),
    "walking stick": ("wood", "take it on long walks"), "music box": ("wood", "listen to it before bed"),
    "bell": ("metal", "ring it in the morning"), "lantern": ("metal", "light it at night"),
    "key": ("metal", "keep it on a string"), "kettle": ("metal", "make tea in it"),
    "crown": ("metal", "wear it on feast days"), "watering can": ("metal", "water the flowers with it"),
    "trumpet": ("metal", "blow it at sunrise"), "cup": ("metal", "drink warm milk from it"),
    "compass": ("metal", "take it on small trips"), "bucket": ("metal", "carry berries in it"),
    "map": ("paper", "dream of far places with it"), "book": ("paper", "read it again and again"),
    "picture": ("paper", "look at it each morning"), "paper star": ("paper", "hang it in the window"),
    "letter": ("paper", "read it out loud"), "notebook": ("paper", "write small poems in it"),
    "fan": ("paper", "wave it on hot days"), "marble": ("glass", "hold it up to the sun"),
    "jar": ("glass", "keep pretty stones in it"), "mirror": ("glass", "make light dance with it"),
    "vase": ("glass", "put wild flowers in it"), "snow globe": ("glass", "shake it softly"),
}
COLORS = "red blue green yellow purple orange white pink brown silver golden".split()
LOOKS = {"cloth": ["soft", "warm", "striped"], "wood": ["wooden", "carved", "shiny"],
         "metal": ["shiny", "copper", "heavy"], "paper": ["pretty", "painted", "bright"],
         "glass": ["glass", "sparkling", "clear"]}
# material: (what happened, a try that fails, what mends it)
MEND = {
    "cloth": [("got caught on a thorn and had a long tear", "tied the two sides together, but the knot came loose",
               "took a needle and thread and sewed the tear with tiny stitches"),
              ("was pulled too hard and ripped in the middle", "held it together with a pin, but the pin fell out",
               "cut a small patch and sewed it over the hole")],
    "wood": [("fell on a stone and cracked", "pressed the pieces together, but they fell apart again",
              "put warm glue on the pieces and held them until they were dry"),
             ("broke into two parts", "tied it with grass, but the grass snapped",
              "carved a little peg and joined the two parts with it")],
    "metal": [("fell down the steps and was badly bent", "pulled on it very hard, but it did not move",
               "tapped it with a small hammer until it was straight"),
              ("got a deep dent", "pushed at the dent, but it would not go away",
               "warmed it by the fire and pressed the dent out")],
    "paper": [("got wet in the rain and tore", "blew on it to dry it, but the tear only grew",
               "laid it flat in the sun and pasted a clean strip over the tear"),
              ("ripped right down the side", "stuck it together with honey, but the honey was too runny",
               "mixed flour and water and made a good paste for the rip")],
    "glass": [("slipped away and got a long crack", "covered the crack with mud, but the mud washed off",
               "filled the crack with clear glue and polished it with a cloth"),
              ("fell down and lost a small piece", "put the piece back, but it dropped out at once",
               "set the piece in with a drop of resin and let it dry")],
}
REACH = {
    "fly": "flew up to the top in a moment", "climb": "climbed up as fast as the wind",
    "dig": "pushed a heap of earth together to stand on", "swim": "fetched a long reed from the water",
    "strong": "lifted {H} up high", "tall": "stretched up as tall as could be",
    "person": "brought a long ladder and held it still",
}
SEEK = {
    "fly": "flew in a wide circle and looked down", "climb": "climbed up high and looked around",
    "dig": "sniffed along the ground", "swim": "looked along the edge of the water",
    "strong": "pushed the thick bushes aside", "tall": "looked over the tops of the bushes",
    "person": "lit a bright lamp and looked around",
}
