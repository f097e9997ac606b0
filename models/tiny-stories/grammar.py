"""A seeded grammar of small English stories (original text, written for this model).

    story(rng) -> str        one story of 60 to 160 words
    python grammar.py [n]    print n stories and the spread of their lengths

A story is drawn in three steps: the cast (hero, helper, sometimes a third one),
the world (a place with its hiding spots, an object with its material), and a plot.
A plot is a list of parts, and a part is a list of sentences to choose from (a tuple
of them where the story can also do without that part); every sentence is filled from the same dictionary, so that names, pronouns, object and
place stay the same from the opening to the closing line.
"""
import random
import sys

from grammar_words import (SHE, HE, ANIMALS, PEOPLE, CHILD, HERO_ADJ, HELPER_ADJ, PLACES, OBJECTS, COLORS, LOOKS, MEND, REACH, SEEK)

MIN_WORDS, MAX_WORDS = 60, 160

TRAIT = ["{He} was always full of ideas.", "{He} liked to hum while {he} worked.",
         "{He} had {ao} and a warm heart.", "Everyone knew {his} happy laugh.", "{detail}",
         "{He} loved quiet mornings and good stories.", "{He} went for a walk every day.",
         "{He} kept {ao} next to {his} bed."]
OWNS = ["{He} had {ao} and loved to {love}.", "{His} best thing was {ao}, and {he} loved to {love}.",
        "{He} owned {ao}. {He} liked to {love}.", "More than anything, {he} loved {his} {oo}.",
        "{detail} {H} had {ao} and liked to {love}.", "{His} grandmother had given {him} {ao}. {He} loved to {love}."]
LIVES = [   # the hero in general; then comes "One day, ..."
    "Once upon a time, there was {ahk} named {H}. {He} lived {in}.",
    "Once upon a time, {ahk} named {H} lived {in}.",
    "Once upon a time, {ahk} lived {in}. {His} name was {H}.",
    "Once upon a time, {in}, there lived {ahk} named {H}.",
    "Long ago, {ahk} named {H} lived {in}.", "There once was {ahk} named {H} who lived {in}.",
    "{H} was {ahk} who lived {in}.", "Far, far away, there lived {ahk} called {H}. {His} home was {in}.",
    "In a small house {in} lived {ahk} named {H}.", "Not so long ago, {ahk} called {H} lived {in}.",
]
STARTS = [  # a moment; the story goes straight on
    "One morning, {ahk} named {H} was walking {in}.", "One day, {ahk} named {H} was playing {in}.",
    "One sunny morning, {H} the {hk} went out early {in}.", "It was a bright day {in}. {AHK} named {H} was out for a walk.",
    "On a warm afternoon, {ahk} named {H} sat {in}.", "Early one day, {ahk} called {H} came out to play {in}.",
    "The sun was shining {in}, and {H} the {hk} was wide awake.",
]
MEET = ["Just then, {afk} named {F} came along.", "Then {afk} called {F} walked by.",
        "{AFK} named {F} saw that something was wrong.", "A friend came by. It was {F}, {afk}.",
        "After a while, {H} met {afk} named {F}.", "Not far away, {afk} named {F} heard {H}."]
ASK = ('"What is the matter, {H}?" asked {F}.', '"Why are you so sad?" asked {F}.',
       '"You look sad, little {hk}," said {F}.', '"Can I help you, {H}?" asked {F}.')
THANKS = ('"Thank you, {F}!" said {H}.', '"You are a true friend, {F}," said {H}.',
          '{H} hugged {F} and said, "Thank you so much!"', '"Oh, thank you!" cried {H}, and {F} smiled.')
FRIENDS = ["From that day on, {H} and {F} were good friends.", "And so {H} the {hk} and {F} the {fk} became best friends.",
           "That night, {H} fell asleep with a smile.", "They laughed together until the sun went down.",
           "{H} never forgot how kind {F} had been.", "After that, {H} and {F} met {in} every day.",
           "And whenever someone needed help, {H} thought of {F} and was kind too."]

# (what is feared, what the hero tries, what the helper advises, what the hero then does)
FEARS = [
    ("a dark cave", "took one step inside, but it was so black that {he} ran out again",
     "Sing a song, and the dark will sound friendly", "sang a merry song and walked into the cave"),
    ("a wobbly bridge", "put one foot on the bridge, but it shook and {he} jumped back",
     "Look at me and not at the water", "looked straight at {F} and crossed the bridge step by step"),
    ("a deep puddle", "touched the cold water, but {he} shivered and turned around",
     "Step on the big stones one after the other", "hopped from stone to stone across the water"),
    ("a loud windmill", "came a little closer, but the noise made {him} hide",
     "Count the turns with me, and the noise becomes a tune", "counted the turns and walked past the windmill"),
    ("a long tunnel", "looked in, but the echo made {him} tremble",
     "Say hello to the echo, and it will say hello to you", "called hello and went through the tunnel"),
    ("a steep slope", "started to go down, but {he} slipped and sat still",
     "Take small steps and hold on to the grass", "took small steps and came down the slope safely"),
]
# (dish, what went wrong, a try that fails, the advice, the result)
DISHES = [
    ("soup", "it was much too salty", "added more water, but then it tasted of nothing",
     "Put in a few potatoes and some herbs", "rich and tasty"),
    ("bread", "it stayed as flat as a plate", "waited and waited, but the dough did not rise",
     "Put the dough near the warm oven and let it rest", "high and golden"),
    ("cake", "it was burnt on one side", "scraped off the black part, but the cake fell apart",
     "Make a smaller fire and turn the pan", "soft and sweet"),
    ("pie", "the filling ran out", "pushed the filling back in, but it only made a mess",
     "Press the edge with a fork before you bake it", "neat and full of fruit"),
    ("jam", "it was thin like water", "stirred it very fast, but it stayed thin",
     "Add one sour apple and let it cook slowly", "thick and red"),
    ("pancakes", "they all stuck to the pan", "pulled at them with a fork, but they tore",
     "First melt a bit of butter in the pan", "round and light"),
]
DISH_IT = {"pancakes": ("them", "were")}
DISH_A = {"cake": "a cake", "pie": "a pie"}
# (skill, how the hero fails, the advice, what happens at last)
SKILLS = [
    ("whistle", "blew and blew, but only air came out", "Make your mouth small and round", "a clear note rang out"),
    ("dance", "turned too fast and fell on the ground", "Listen to the beat and begin slowly", "{his} feet found the beat"),
    ("skate", "slid to the left and fell to the right", "Bend your knees and look ahead", "{he} slid along like a feather"),
    ("juggle", "threw three apples up, and all of them fell down", "Start with one apple and then take two", "all the apples stayed in the air"),
    ("paint", "painted a tree, but it looked like a brush", "Look at the tree for a while before you paint", "there was a lovely tree on the page"),
    ("sing", "opened {his} mouth, but only a squeak came out", "Breathe deep down into your belly", "a sweet song filled the air"),
    ("tie a knot", "pulled the string, and the knot slipped open", "Make a loop and let the end go around it twice", "the knot was firm and neat"),
    ("count to twenty", "always forgot what came after twelve", "Lay down one stone for every number", "{he} counted all the way to twenty"),
]
# (plant, what was wrong, the failed try, advice, result)
PLANTS = [
    ("a sunflower seed", "nothing came out of the ground", "poured a whole bucket of water on it, but it only made mud",
     "Give it a little water each day and wait", "a tall sunflower"),
    ("a bean", "only a thin white sprout showed", "pulled at the sprout to make it grow, but it bent over",
     "Put a stick beside it and leave it in the light", "a green vine full of beans"),
    ("a pumpkin seed", "the leaves turned yellow", "sang to the leaves all day, but they stayed yellow",
     "Feed the ground with old leaves", "a fat orange pumpkin"),
    ("a strawberry plant", "it had no fruit at all", "moved it to a new spot, but it drooped",
     "Let it stand in the sun and keep it still", "a row of sweet strawberries"),
    ("a rose bush", "bugs sat on every leaf", "blew at the bugs, but they came right back",
     "Ask the ladybugs to move in", "one perfect rose"),
]
# (the noise, a failed try, what it was, what they do)
NOISES = [
    ("tap, tap, tap", "put a pillow over {his} ears, but the sound went on", "a branch knocking on the window", "tied the branch back with a string"),
    ("hoo, hoo, hoo", "hid under the bed, but the sound was still there", "the wind blowing over an empty bottle", "laid the bottle on its side"),
    ("drip, drip, drip", "counted to one hundred, but the sound did not stop", "water falling into a tin pot", "put a sponge into the pot"),
    ("scratch, scratch, scratch", "shouted for it to stop, but it went on", "a tiny beetle stuck in a box", "opened the box and let the beetle go"),
    ("creak, creak, creak", "closed the door tight, but the sound came back", "the garden gate swinging in the wind", "put a stone in front of the gate"),
]

# name: (weight, owns the object from the start, starts with LIVES only, parts)
PLOTS = {
    "lost": (14, True, False, [
        ["{T}{his} {o} was gone.", "{T}{he} could not find {his} {o}.", "{T}{H} reached for {his} {o}, but it was not there.",
         "{T}{H} saw that {his} {oo} was missing."],
        ["{He} looked {s1}, but it was not there.", "{He} searched {s1} and found only a snail.", "First, {he} looked {s1}. Nothing!"],
        ["Then {he} looked {s2}, but there was no {o}. {He} was very sad.", "{He} looked {s2} too, but the {o} was not there. {He} began to cry.",
         "{He} even looked {s2}. It was no use, and {H} sat down with a sigh."],
        MEET, ASK,
        ['"I lost my {o}," said {H}.', '"My {oo} is gone," said {H}.', '"I cannot find my {o} anywhere," {H} said.'],
        ['"Let us look together," said {F}. {F} {seek}.', '{F} nodded. "Two see more than one." Then {F} {seek}.',
         '"Do not give up," said {F}, and {fhe} {seek}.'],
        ["There was the {o}, {s3}!", "And there it was! The {oo} lay {s3}.", 'Soon {F} called, "Here it is!" The {o} was {s3}.'],
        THANKS,
        ("Now {H} could {love} again.", "{H} held the {o} close and promised to take better care of it.", "{H} was happy to have {his} {o} back."),
        FRIENDS]),
    "broken": (14, True, False, [
        ["{T}the {o} {dmg}.", "{T}something bad happened. The {o} {dmg}.", "{T}{H} was not careful, and the {o} {dmg}."],
        ('"Oh no, my {o}!" cried {H}.', "{H} felt tears in {his} eyes.", "{H} looked at the {oo} and was very sad."),
        ["{He} {mtry}.", "{He} tried to mend it. {He} {mtry}.", "First, {he} {mtry}."],
        MEET, ASK,
        ['"My {o} is broken, and I cannot mend it," said {H}.', '"I tried to mend my {o}, but it did not work," said {H}.',
         '{H} showed {F} the {o}. "Look, it is broken," {he} said.'],
        ['"I know what to do," said {F}. {Fhe} {mfix}.', '"Let me show you," said {F}. Slowly and with care, {fhe} {mfix}.',
         "{F} sat down beside {H} and {mfix}."],
        ["Soon the {o} was as good as new.", "Now the {oo} was whole again.", "At last the {o} was mended, and it looked even better than before."],
        THANKS,
        ("Then {he} could {love} once more.", "{H} learned that broken things can be mended with patience.", "{H} was careful with the {o} from then on."),
        FRIENDS]),
    "stuck": (12, True, False, [
        ["{T}a strong wind took the {o} and carried it up to {high}.", "{T}the {o} got stuck on {high}.",
         "{T}a cheeky magpie took the {o} and dropped it on {high}."],
        ("It was much too high for {H}.", "{H} looked up. It was so far away!", '"How will I get it down?" said {H}.'),
        ["{He} jumped and jumped, but {he} could not reach it.", "{He} threw a small stick at it, but the stick fell back down.",
         "{He} stood on a box, but it was not high enough."],
        MEET, ASK,
        ['"My {o} is up on {high}," said {H}.', '"I cannot reach my {oo}," said {H}.', '{H} pointed up. "My {o} is stuck," {he} said.'],
        ['"I can help with that," said {F}.', '"That is no problem for us two," said {F}.', '"Wait and see," said {F}.'],
        ["{F} {reach}, and soon the {o} was free.", "{F} {reach}, and a moment later they had the {o} back.",
         "Then {F} {reach}. Down came the {oo}, safe and sound."],
        THANKS,
        ("{H} held {his} {o} tight and danced with joy.", "Now {H} could {love} again.", "{H} let {F} try the {o} first."),
        FRIENDS]),
    "fear": (9, False, False, [
        ["{T}{he} came to {fear}.", "{T}the path led {him} to {fear}.", "{T}{he} stood in front of {fear}."],
        ["{His} {oo} was on the other side, and {he} wanted it back.", "{He} had to go that way, because {his} {o} was on the other side.",
         "{H} wanted to bring {his} {o} to a friend on the other side, but {he} was afraid."],
        ["{He} {ftry}.", "{He} took a deep breath and {ftry}.", "{H} was afraid. {He} {ftry}."],
        MEET,
        ['"I am too scared to go on," said {H}.', '"I am afraid," {H} said in a small voice.', '"I want to be brave, but I cannot," said {H}.'],
        ['"Everyone is scared sometimes," said {F}. "{fadv}."', '"I was scared once, too," said {F}. "{fadv}."', '"{fadv}," said {F}.'],
        ["So {H} tried again. {He} {fdo}.", "{H} closed {his} eyes for a moment. Then {he} {fdo}.", "With {F} close by, {he} {fdo}."],
        ("On the other side, {he} cheered.", '"I did it!" cried {H}.', "It was not so bad after all."),
        ("{He} held up {his} {o} and laughed.", "Soon the {oo} was where it belonged.", "{H} was proud, and {F} was proud of {him}."),
        FRIENDS + ["{H} knew now that being brave means to try even when you are afraid."]]),
    "cook": (9, False, False, [
        ["{T}{he} wanted to make {adish} for all the neighbors.", "{T}{H} decided to make {adish} for a feast.", "{T}{he} felt like making {adish}."],
        ["{He} worked hard, but {dbad}.", "{He} mixed and stirred and waited, but {dbad}.", "It took all morning, but {dbad}."],
        ("{He} {dtry}.", "{H} did not give up yet. {He} {dtry}.", "To save the {dish}, {he} {dtry}."),
        MEET, ['"What is that smell?" asked {F}.', '"What are you making?" asked {F}.', '"You look tired, {H}," said {F}.'],
        ['"I wanted to make {adish}, but it went wrong," said {H}.', '"My {dish} will never be good," said {H}.'],
        ['"{dadv}," said {F}. "That always helps."', '"My mother taught me a trick," said {F}. "{dadv}."', '{F} smiled. "{dadv}," {fhe} said.'],
        ["They tried it together, and this time the {dish} {dwas} {dgood}.", "{H} did just that. Now the {dish} {dwas} {dgood}."],
        ("Everyone {in} came to eat.", "The neighbors ate {dit} all up and asked for more.", "They shared {dit} with everyone {in}."),
        ("To say thank you, {H} gave {F} {ao}.", '"Next time, you can teach me more," said {H}.', "{H} gave the biggest part to {F}."),
        FRIENDS]),
    "way": (9, False, False, [
        ["{T}{he} went too far from home and lost {his} way.", "{T}{he} followed a butterfly and forgot to look at the path.",
         "{T}a thick fog came down, and {he} could not see the path."],
        ('"Where is my home?" said {H}.', "Everything looked the same.", "{H} did not know this part of {p}."),
        ["{He} walked for a long time and stopped {s1}. That was wrong.", "{He} walked in a circle and ended up {s1} again.",
         "{He} tried a small path, but it ended {s1}."],
        ("{H} sat down and held {his} {o} tight.", "{He} was tired and cold, and {he} had only {his} {o} with {him}.", "{He} hugged {his} {oo} and tried not to cry."),
        MEET, ['"Are you lost, {H}?" asked {F}.', '"Little {hk}, where do you want to go?" asked {F}.'],
        ['"I want to go home," said {H}.', '"I do not know the way home," said {H}.'],
        ['"I know {p} very well," said {F}. Then {F} {seek}.', '"Follow me," said {F}. First, {fhe} {seek}.'],
        ["They went past {high}, and there was the right path.", "Soon they saw {high}, and {H} knew where {he} was.", "Behind {high}, they found the path at last."],
        ["Before it was dark, {H} was home.", "A light was burning in the window. {H} was home.", "Soon {H} stood in front of {his} own door."],
        ("{H} gave {F} the {o} as a present.", '"Thank you for showing me the way," said {H}.', "{H} made tea, and {F} told stories."),
        FRIENDS]),
    "shy": (7, False, False, [
        ["{T}{he} wished for a friend.", "{T}{he} felt lonely and wished for someone to play with.", "{T}{he} saw the others play and wanted to join them."],
        ["{He} went closer, but no word came out of {his} mouth.", "{He} wanted to say hello, but {his} voice was too small.", "{He} waved, but nobody saw it."],
        ["So {he} hid {s1} and held {his} {o}.", "{H} sat down {s1} with {his} {oo}.", "Then {he} went away and sat {s1}, all alone with {his} {o}."],
        MEET, ['"That is a nice {o}," said {F}.', '"May I see your {oo}?" asked {F}.', '"What do you have there?" asked {F}.'],
        ['"It is my {o}," {H} said softly.', "{H} blushed and held out the {o}.", '"You can hold it if you want," said {H}.'],
        ['"I like to {love} too," said {F}. "Shall we play?"', '"Come with me," said {F}. "The others will love it."', '"Will you be my friend?" asked {F}.'],
        ('{H} nodded. "Yes, please!"', "{H} was so glad that {he} jumped up.", '"I would like that very much," said {H}.'),
        ["They took the {o} and played {in} all day.", "Soon everyone {in} was playing together.", "Together they ran and jumped and laughed."],
        ("{H} was not lonely any more.", "Now {H} had a friend, and it felt warm inside.", "It had only taken one small hello."),
        FRIENDS]),
    "share": (9, True, False, [
        ["{T}{ark} named {R} saw the {o} and wanted it too.", "{T}{ark} called {R} came by and took the {o}.", "{T}{H} met {ark} named {R}. {R} wanted the {o}."],
        ['"It is mine!" cried {H}. "No, I want it!" cried {R}.', '"Give it to me!" said {R}. "Never!" said {H}.', '"I had it first," said {H}. "But I need it," said {R}.'],
        ("They pulled at the {o} from both sides, and it almost broke.", "{H} pulled and {R} pulled, and both fell on the ground.",
         "They shouted so loudly that nobody had any fun."),
        ["Then {afk} named {F} came along.", "{AFK} named {F} heard the noise.", "{F}, {afk}, had seen it all."],
        ['"Why do you fight?" asked {F}.', '"Stop, you two," said {F}.', '"What a pity," said {F}.'],
        ['"One of you can have the {o} in the morning, and one in the afternoon," said {F}.', '"Take turns," said {F}. "Then both of you can be happy."',
         '"A {o} is more fun for two," said {F}. "Play with it together."'],
        ("{H} looked at {R}, and {R} looked at {H}.", "They thought about it for a while.", "It was quiet for a moment."),
        ['"You can go first," said {H}.', '"I am sorry," said {R}. "So am I," said {H}.', 'Then {H} held out the {o}. "Here, {R}, it is your turn."'],
        ["So they shared the {oo}, and it was better than before.", "They took turns all day long.", "After that, they played with the {o} together {in}."],
        ("{F} smiled and went on {fhis} way.", "{F} was glad and clapped {fhis} {flimbs}.", "{F} sat down and watched them play."),
        ["From that day on, {H} and {R} were good friends.", "{H} had learned that sharing makes joy twice as big.", "And so the {hk} and the {rk} shared everything."]]),
    "skill": (8, False, False, [
        ["{T}{he} wanted to learn how to {skill}.", "{T}{he} had one big wish. {He} wanted to {skill}.", "{T}{he} saw someone {skill}, and {he} wanted to do it too."],
        ["{He} {sfail}.", "{He} tried right away. {He} {sfail}.", "{H} went to a quiet place {s1} to try. {He} {sfail}."],
        ("{He} tried it again, but it was no better.", "The others laughed, and {H} felt small.", '"I will never learn it," said {H}.'),
        MEET, ['"I saw you try," said {F}. "That was a good start."', '"Do not be sad," said {F}. "Nobody can do it on the first day."'],
        ['"Will you help me?" asked {H}.', '"Can you teach me how to {skill}?" asked {H}.'],
        ['"Yes," said {F}. "{sadv}."', '"Of course," said {F}. "{sadv}. Then try once more."'],
        ["{H} did what {F} said. It took a long time.", "They practiced together every day for a week.", "{H} tried once, twice, and three times."],
        ["And then {swin}!", "At last, {swin}!", "One evening, {swin}!"],
        ('"Now I can {skill}!" cried {H}.', "{F} clapped {fhis} {flimbs} and cheered.", "Everyone {in} cheered for {him}."),
        ["To say thank you, {H} gave {F} {ao}.", "{H} was proud and thanked {F}.", "As a prize, {F} gave {H} {ao}."],
        FRIENDS + ["{H} knew that it is fine to fail as long as you try again."]]),
    "plant": (7, False, False, [
        ["{T}{he} planted {plant} {s1}.", "{T}{he} found a good spot {s1} and planted {plant} there.", "{T}a traveler gave {him} {plant}, and {he} planted it {s1}."],
        ["{He} waited for many days, but {pbad}.", "A week went by, but {pbad}.", "Every morning {he} ran to look, but {pbad}."],
        ("{He} {ptry}.", "{H} could not wait. {He} {ptry}.", "{H} wanted to help. {He} {ptry}."),
        MEET, ASK,
        ['"My plant does not want to grow," said {H}.', '"I did everything, but my plant is not well," said {H}.'],
        ['"Plants need time," said {F}. "{padv}."', '"I know about plants," said {F}. "{padv}."', '"{padv}," said {F}.'],
        ["{H} did as {F} had said.", "So {H} was patient and did just that.", "From then on, {H} and {F} looked after it together."],
        ["After some weeks, there was {pwin}.", "One fine morning, {he} saw {pwin}.", "And then, one day, there it was: {pwin}!"],
        ("{H} put {his} {o} down and danced around it.", "{H} painted it on {his} wall for {F} to see.", "Everyone {in} came to see it."),
        ["{H} had learned that good things take time."] + FRIENDS]),
    "gift": (8, False, False, [
        ["{T}it was the birthday of {R}, {ark}, and {H} had no gift.", "{T}{he} heard that {ark} named {R} had a birthday. {H} wanted to bring a gift."],
        ['"{R} always wanted {ao}," {he} thought.', "{He} knew that {R} was dreaming of {ao}.", '"I will find {ao} for {R}," said {H}.'],
        ["{He} went to the shop, but {he} had no coins.", "{He} asked at every door, but nobody had one.", "{He} looked {s1}, but there was nothing there."],
        MEET, ASK,
        ['"I need {ao} for {R}," said {H}.', '"I have no gift for {R}," said {H}.'],
        ['"We can make one," said {F}. "I will show you how."', '"The best gifts are made by your own {limbs}," said {F}.', '"I have all that we need at home," said {F}.'],
        ["They worked all day long, and in the evening the {o} was done.", "{F} helped, and {H} did the rest. Soon they had made {ao}.",
         "It was hard work, but at last the {oo} was ready."],
        ['"Happy birthday, {R}!" said {H}, and gave {rhim} the {o}.', "They put the {o} in a box with a ribbon and took it to {R}."],
        ('"What a lovely {o}!" cried {R}.', "{R} was so happy that {rhe} laughed out loud.", '"This is the best gift of all," said {R}.'),
        ["They ate cake together, {H}, {F} and {R}.", "{H}, {R} and {F} danced until the moon came up.", "{H} looked at {F} and felt proud.",
         "And {R} loved to {love} for many years."]]),
    "storm": (7, True, True, [
        ["One evening, dark clouds came over {p}.", "One night, a great storm came to {p}.", "One afternoon, the wind grew wild and the sky turned black."],
        ["The rain came through the roof and fell on the {o}.", "The wind broke a window, and the {o} got wet.", "Water ran under the door, right up to the {o}."],
        ("{H} put a bowl under the hole, but it was full at once.", "{H} held a cloth against it, but the cloth was soon wet.", "{He} pushed a chair against it, but it did not help."),
        ["Then someone knocked. It was {F}, {afk} who lived next door.", "Then {afk} named {F} came running through the rain."],
        ['"I saw your light," said {F}. "Do you need help?"', '"Quick, let us work together," said {F}.', '"Do not be afraid," said {F}.'],
        ('"Please save my {o}!" cried {H}.', '"My house is getting wet," said {H}.'),
        ["{F} brought strong boards, and {H} held them. They closed the hole.", "{F} pushed from one side and {H} from the other until it was closed.",
         "They stopped the water with a big board and a heavy stone."],
        ["Then {F} dried the {oo} by the fire.", "The {o} was safe and soon it was dry.", "{H} put the {o} in a dry place."],
        THANKS,
        ("They drank hot tea and listened to the rain.", "In the morning, the sun came out over {p}.", "Outside it was loud, but inside it was warm."),
        FRIENDS]),
    "noise": (6, False, True, [
        ["One night, {he} heard a strange sound. {noise}!", "One night, {he} woke up. There was a sound in the dark: {noise}.", "One evening, {he} lay in bed and heard something. {noise}!"],
        ("{H} was scared and held {his} {o} tight.", "{He} pulled {his} {oo} close.", '"Is it a monster?" {he} thought.'),
        ["{He} {ntry}.", "First, {he} {ntry}.", "{H} wanted to sleep. {He} {ntry}."],
        ["So {he} ran to {F}, {afk} who lived next door.", "Then {he} called {his} neighbor {F}, {afk}."],
        ['"There is a monster at my house!" said {H}.', '"Something is making a noise at my house," said {H}.'],
        ['"Let us go and see," said {F}. "Together we are brave."', '"Take a light and come with me," said {F}.'],
        ("They walked slowly around the house.", "They tiptoed toward the sound.", "{F} went first, and {H} followed close behind."),
        ["There was no monster. It was only {nis}!", 'And what did they find? "It is just {nis}!" cried {H}.'],
        ["{F} laughed, and {H} laughed too. Then they {ndo}.", "They {ndo}, and the sound was gone."],
        ("Now it was quiet, and {H} could sleep.", "{H} gave {F} {ao} as thanks.", '"Good night, {F}," said {H}. "Good night, {H}," said {F}.'),
        ["{H} knew that many scary things are small when you look at them with a friend.",] + FRIENDS]),
    "truth": (8, False, False, [
        ["{T}{he} borrowed {ao} from {ark} named {R}.", "{T}{ark} named {R} gave {him} {ao} to keep for one day."],
        ["But {H} was not careful, and the {o} {dmg}.", "{H} played with it, and the {o} {dmg}."],
        ["{He} hid the {o} {s1} and said nothing.", '"I will just hide it {s1}," {H} thought.'],
        ("But {he} could not eat, and {he} could not sleep.", "But {his} heart felt as heavy as a stone.", "All day, {he} felt bad about it."),
        MEET, ASK,
        ['"I broke {R}\'s {o}, and I hid it," said {H}.', '"The {o} is broken, and {R} does not know," {H} said.'],
        ['"Tell {R} the truth," said {F}. "I will come with you."', '"The truth is hard at first and easy after," said {F}.'],
        ['So {H} went to {R}. "I am sorry. I broke your {o}," {he} said.', '{H} took the {oo} to {R} and said, "It was me. I am sorry."'],
        ['"Thank you for telling me," said {R}. "We can mend it."', '{R} was quiet. Then {rhe} said, "I am glad that you told me."'],
        ["{F} {mfix}, and the {o} was as good as new.", "Then {F} {mfix}, and all three smiled."],
        ["{H} felt as light as a bird.", "After that, {H} always told the truth.", "From that day on, {H} and {R} trusted each other."]]),
}
PLOT_NAMES = list(PLOTS)
PLOT_WEIGHTS = [PLOTS[k][0] for k in PLOT_NAMES]
ONE_DAY = ["One day, ", "One morning, ", "One afternoon, ", "One fine day, ", "Then, one day, ", "One windy day, "]
THAT_DAY = ["But that day, ", "On this day, ", "A little later, ", "Before long, ", "After a while, "]


def a(words):
    return ("an " if words[0] in "aeiou" else "a ") + words


def cap(text):
    return text[0].upper() + text[1:]


def character(rng, taken, adjectives, adults):
    """(name, pronouns, noun, 'a little fox', limbs, skill); names and nouns are taken once"""
    she = rng.random() < 0.5
    name = rng.choice([n for n in (SHE if she else HE) if n not in taken])
    if not adults and rng.random() < 0.2:
        noun, (limbs, skill) = CHILD["she" if she else "he"], ("hands", "person")
    else:
        pool = PEOPLE if adults and rng.random() < 0.25 else ANIMALS
        noun = rng.choice([k for k in pool if k not in taken])
        limbs, skill = pool[noun]
    taken.update((name, noun))
    pron = ("she", "her", "her") if she else ("he", "him", "his")
    return name, pron, noun, a(rng.choice(adjectives) + " " + noun), limbs, skill


def draw(rng):
    pick = rng.choice
    plot = rng.choices(PLOT_NAMES, PLOT_WEIGHTS)[0]
    _, owns, lives_only, parts = PLOTS[plot]
    taken = set()
    H, (he, him, his), hk, ahk, limbs, _ = character(rng, taken, HERO_ADJ, False)
    F, (fhe, fhim, fhis), fk, afk, flimbs, skill = character(rng, taken, HELPER_ADJ, True)
    R, (rhe, rhim, _), rk, ark, _, _ = character(rng, taken, HERO_ADJ, False)
    p, inp, detail, high, spots = pick(PLACES)
    s1, s2, s3 = rng.sample(spots, 3)
    o = pick(list(OBJECTS))
    material, love = OBJECTS[o]
    oo = pick(COLORS + LOOKS[material] * 2) + " " + o
    dmg, mtry, mfix = pick(MEND[material])
    w = dict(H=H, he=he, He=cap(he), him=him, his=his, His=cap(his), hk=hk, ahk=ahk, AHK=cap(ahk), limbs=limbs,
             F=F, fhe=fhe, Fhe=cap(fhe), fhim=fhim, fhis=fhis, fk=fk, afk=afk, AFK=cap(afk), flimbs=flimbs,
             R=R, rhe=rhe, rhim=rhim, rk=rk, ark=ark, p=p, detail=detail, high=high, s1=s1, s2=s2, s3=s3,
             o=o, oo=oo, ao=a(oo), love=love, dmg=dmg, mtry=mtry, mfix=mfix, seek=SEEK[skill])
    w["in"] = inp
    w["reach"] = REACH[skill].format_map(w)
    if plot == "fear":
        w.update(zip(("fear", "ftry", "fadv", "fdo"), (t.format_map(w) for t in pick(FEARS))))
    elif plot == "cook":
        w.update(zip(("dish", "dbad", "dtry", "dadv", "dgood"), pick(DISHES)))
        w["adish"] = DISH_A.get(w["dish"], w["dish"])
        w["dit"], w["dwas"] = DISH_IT.get(w["dish"], ("it", "was"))
    elif plot == "skill":
        w.update(zip(("skill", "sfail", "sadv", "swin"), (t.format_map(w) for t in pick(SKILLS))))
    elif plot == "plant":
        w.update(zip(("plant", "pbad", "ptry", "padv", "pwin"), pick(PLANTS)))
    elif plot == "noise":
        w.update(zip(("noise", "ntry", "nis", "ndo"), (t.format_map(w) for t in pick(NOISES))))
        w["noise"] = cap(w["noise"])
    lives = lives_only or rng.random() < 0.65
    w["T"] = pick(ONE_DAY if lives else THAT_DAY)
    # plots that lean on "his {o}" name the object first, except where the plot itself brings it
    brings = plot in ("cook", "skill", "gift", "truth")
    second = pick(TRAIT[:2] + TRAIT[3:7] if brings else OWNS if owns else OWNS + ["{He} had {ao} and a warm heart.", "{He} kept {ao} next to {his} bed."])
    # a tuple is a part the story can do without: some stories are short, some tell everything
    drop = pick((0, 0.3, 0.6, 1))
    text = [pick(LIVES if lives else STARTS)] + ([second] if owns or rng.random() >= drop else [])
    text += [pick(part) for part in parts if isinstance(part, list) or rng.random() >= drop]
    return " ".join(t.format_map(w) for t in text)


def story(rng):
    while True:
        s = draw(rng)
        if MIN_WORDS <= len(s.split()) <= MAX_WORDS:
            return s


if __name__ == "__main__":
    rng = random.Random(0)
    many = [story(rng) for _ in range(20000)]
    for s in many[: int(sys.argv[1]) if len(sys.argv) > 1 else 10]:
        print(s, "\n")
    n = sorted(len(s.split()) for s in many)
    print(f"words: min {n[0]}, median {n[len(n) // 2]}, 95% {n[len(n) * 95 // 100]}, max {n[-1]};"
          f" different stories: {len(set(many))} of {len(many)};"
          f" different words: {len({x for s in many for x in s.lower().split()})}")
