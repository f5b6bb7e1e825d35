"""The words of the synthetic essays, all written for pairscale (data only).

A phrase may hold ``[one|another]`` alternatives (they nest) and ``{slots}`` of :data:`LEXICON`. Sentences are written
without their capital and full stop, which the generator adds. Whatever comes in three tiers is plain, competent and
accomplished, in this order; where the writer's position matters there is one entry for it and one against it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = [
    "ASIDES",
    "CLOSINGS",
    "COMPOUNDS",
    "CONCESSIONS",
    "CONCESSION_FRAMES",
    "EXAMPLE_LEADS",
    "HOOKS",
    "LEADS",
    "LEXICON",
    "PADDING",
    "RESTATEMENTS",
    "THESES",
    "Idea",
    "Tiers",
]

Tiers: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Phrases of one kind: plain, competent, accomplished."""


@dataclass(frozen=True, slots=True)
class Idea:
    """One reason, in the words of weak, middling and strong writers.

    Attributes:
        claim: a clause, what would follow.
        ground: a clause that fits behind "claim because".
        evidence: a sentence with an example, an observation or a figure.
        impact: a sentence, why that matters.
    """

    claim: Tiers
    ground: Tiers
    evidence: Tiers
    impact: Tiers


LEXICON: dict[str, Tiers] = {
    "good": (("good", "nice", "great"), ("helpful", "good", "positive"), ("beneficial", "valuable", "worthwhile")),
    "bad": (("bad", "really bad", "horrible"), ("harmful", "bad", "unhealthy"), ("detrimental", "damaging", "harmful")),
    "big": (("main", "big", "most important"), ("most important", "main"), ("decisive", "most pressing")),
    "significant": (("big", "good"), ("big", "real"), ("meaningful", "substantial", "considerable")),
    "lots": (("lots of", "loads of", "so much"), ("a lot of", "so much"), ("a great deal of", "far too much")),
    "many": (("lots of", "loads of", "so many"), ("a lot of", "many"), ("a great many", "countless")),
    "kids": (("kids", "little kids", "children"), ("children", "young children"), ("children", "younger residents")),
    "town": (("town", "the town"), ("the town centre", "the centre of town"), ("the town centre", "the old centre")),
    "town_n": (("town", "place"), ("town", "neighbourhood"), ("town", "community")),
    "shops": (
        ("the shops", "shops"),
        ("local shops", "small shops"),
        ("independent traders", "local businesses", "small retailers"),
    ),
    "busy": (("full", "busy"), ("busy", "crowded"), ("congested", "perpetually busy")),
    "problem": (("problem", "pain"), ("problem", "big problem"), ("serious obstacle", "constant headache")),
    "plan": (("idea", "thing"), ("idea", "plan"), ("proposal", "scheme", "measure")),
    "think": (("think", "really think"), ("believe", "think"), ("would argue", "am convinced", "maintain")),
}
"""What fills the slots, by the writer's vocabulary."""

HOOKS: Tiers = (
    (
        "[hi|hello], my name is [Sam|Alex|Jamie|Robin] and I am going to [talk|write] about cars",
        "this is about [cars|if cars should be in town]",
        "there are {many} cars in [my|our] town",
        "everyone has a car [these days|now]",
        "so the question is about cars in town",
    ),
    (
        "the council [wants|is planning] to close the town centre to cars [one day a week|once a week]",
        "in our town [people have been talking|there has been a lot of talk] about a car-free day",
        "cars are [a part of everyday life|useful], but they also cause [many |]problems",
        "should there be [one day a week|a day every week] without cars in [the centre of our town|our town centre]?",
        "there is a [plan|suggestion] to keep cars out of the [town centre|centre] for one day every week",
    ),
    (
        (
            "stand in our market square at [five o'clock on a Friday|noon on a Saturday], and you will hear "
            "[engines|horns] before you hear a [single voice|human voice]"
        ),
        (
            "few [proposals|ideas] have divided our town as [sharply|deeply] as the one to close its centre to cars "
            "for a day each week"
        ),
        (
            "a town centre can be [a place to drive through or a place to be|a junction or a living room]; it "
            "[struggles|cannot hope] to be both"
        ),
        (
            "[how much of our town belongs to the people who live in it, and how much|does our town belong to the "
            "people who live in it, or] to the cars that [pass through|fill] it?"
        ),
        (
            "whenever the [car-free day|council's plan] is mentioned at our dinner table, [somebody|my brother] puts "
            "down a fork and starts an argument"
        ),
        (
            "the council's [proposal|plan] to ban cars from the centre [once a week|one day in seven] has been called "
            "everything from [visionary to absurd|overdue to unthinkable]"
        ),
        (
            "for six days a week, nobody would notice [any|the slightest] difference; it is the seventh that has [set "
            "the town arguing|divided the town]"
        ),
    ),
)
"""First sentences."""

THESES: tuple[Tiers, Tiers] = (
    (
        (
            "I {think} it is a {good} idea",
            "I think they should do it",
            "yes I think cars should not be allowed in town one day a week",
            "in my opinion it would be {good}[ for everyone| for the town|]",
            "I say yes to the car free day",
        ),
        (
            "I {think} that this is a {good} idea [for several reasons|for a few reasons|and I will explain why]",
            "in my opinion, the council should [try it|give it a chance|do this]",
            "I agree with this {plan}, because it would make the town better for [most people|everyone]",
            "I {think} that a day without cars would be {good} for [our town|the people who live here]",
        ),
        (
            (
                "although it would ask for some patience, I {think} that a weekly car-free day would repay the town "
                "[many times over|handsomely]"
            ),
            (
                "I {think} that the council should go ahead, [not because cars are evil but because|since] streets "
                "have better uses"
            ),
            (
                "the {plan} deserves support, less for what it takes away from drivers than for what it gives [back to "
                "everyone else|to those on foot]"
            ),
            (
                "for all the inconvenience [involved|it may cause], [one day without traffic|a day of empty roads] is "
                "a price worth paying"
            ),
            (
                "the [inconvenience is|drawbacks are] real but small, whereas the benefits [reach|extend to] [almost "
                "everyone|nearly all of us]"
            ),
        ),
    ),
    (
        (
            "I {think} it is a bad idea",
            "I don't think they should do it",
            "no I think cars should be allowed in town every day",
            "in my opinion it is a stupid {plan}",
            "I say no to the car free day",
        ),
        (
            "I {think} that this is not a good idea [for several reasons|for a few reasons|and I will explain why]",
            "in my opinion, the council should [not do this|forget about it|look for another solution]",
            "I disagree with this {plan}, because it would cause more problems than it solves",
            "I {think} that a day without cars would be bad for [our town|many people who live here]",
        ),
        (
            "although its aims are [hard to fault|admirable], I {think} that the {plan} would do more harm than good",
            (
                "I {think} that the council should think again, [not because cars are harmless but because|since] a "
                "ban is the wrong remedy"
            ),
            (
                "the {plan} deserves to be rejected, less for what it hopes to achieve than for [whom it would leave "
                "behind|what it would cost]"
            ),
            (
                "for all its [charm|good intentions], a weekly ban would [trouble many people and solve|inconvenience "
                "many and achieve] very little"
            ),
            (
                "the [benefits|advantages] are [real but small|pleasant but minor], whereas the costs [fall on|are "
                "borne by] those who can least afford them"
            ),
        ),
    ),
)
"""The position that the essay takes: for, against."""

COMPOUNDS: Tiers = (
    (
        "<A> because <B>",
        "<A> and <B>",
        "<B> so <A>",
        "<B> and <A>",
        "<A>. <B>",
        "I think <A> because <B>",
        "<A>, <B>",
    ),
    (
        "<A> because <B>",
        "<B>, so <A>",
        "<A>, because <B>",
        "since <B>, <A>",
        "I think that <A>, because <B>",
        "<A>. <B>",
    ),
    (
        "because <B>, <A>",
        "<B>; as a result, <A>",
        "<A>, not least because <B>",
        "given that <B>, <A>",
        "<A>, for the simple reason that <B>",
        "since <B>, it is reasonable to expect that <A>",
        "it stands to reason that <A>: <B>",
        "<B>, which means that <A>",
        "<A>. After all, <B>",
    ),
)
"""How a claim <A> and its ground <B> become a sentence."""

LEADS: tuple[Tiers, Tiers, Tiers] = (
    (
        ("", "", "the first thing is ", "well ", "firstly "),
        ("first of all, ", "firstly, ", "to begin with, ", "the first reason is that ", "one reason is that "),
        ("to begin with, ", "first and foremost, ", "the most obvious point is that ", "in the first place, ", ""),
    ),
    (
        ("also ", "and ", "and also ", "another thing is ", "plus ", "then ", "", ""),
        ("also, ", "secondly, ", "another reason is that ", "in addition, ", "besides, ", "moreover, "),
        (
            "equally important, ",
            "there is a further point: ",
            "beyond that, ",
            "what is more, ",
            "no less important, ",
            "a second consideration is that ",
            "",
        ),
    ),
    (
        ("and ", "also ", "and another thing ", "oh and ", "and then ", "", ""),
        ("finally, ", "last but not least, ", "the last reason is that ", "furthermore, ", "on top of that, "),
        ("finally, ", "there is, lastly, a broader point: ", "perhaps most importantly, ", "last of all, ", ""),
    ),
)
"""How a reason is introduced: the first one, one between, the last one."""

EXAMPLE_LEADS: Tiers = (
    ("", "", "", "like ", "because "),
    ("for example, ", "for example, ", "for instance, ", "", ""),
    ("", "", "", "for instance, ", "to take one example, "),
)
"""How an example is introduced."""

CONCESSION_FRAMES: Tiers = (
    ("some people say <C> but <R>", "I know <C> but <R>", "maybe <C> but I don't care, <R>", "ok <C> but <R>"),
    (
        "some people say that <C>, but <R>",
        "on the other hand, <C>. However, <R>",
        "it is true that <C>. However, <R>",
        "of course <C>, but <R>",
    ),
    (
        "admittedly, <C>; nevertheless, <R>",
        "critics will object that <C>. Yet <R>",
        "it would be dishonest to deny that <C>. Even so, <R>",
        "granted, <C>, but <R>",
        "while it is true that <C>, <R>",
        "opponents rightly point out that <C>; what they overlook is that <R>",
    ),
)
"""How an objection <C> and the reply <R> become a passage."""

CONCESSIONS: tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]] = (
    (
        (
            "some customers come by car",
            "[they could park by the station and walk|six other days remain for heavy shopping]",
        ),
        (
            "not everyone can walk far",
            "[people who need a car could get a special pass|a simple permit would solve that problem]",
        ),
        (
            "the buses are often full",
            "[the council could run extra buses that day|that is a reason to improve them, not to give up]",
        ),
        (
            "other roads would be busier",
            "[most drivers plan ahead when they know the day|that effect tends to fade after a few weeks]",
        ),
        (
            "drivers will complain at first",
            "[people get used to new things very quickly|they complained about the new park too]",
        ),
        (
            "the shops need deliveries",
            "[a van can come early in the morning|deliveries before nine would disturb nobody]",
        ),
    ),
    (
        (
            "cars make the air dirty",
            "[one day a week would hardly change that|better buses would help every day of the week]",
        ),
        (
            "a quiet street is pleasant",
            "[there is already a park for that|it is not pleasant for those who cannot reach it]",
        ),
        (
            "children need to be safe",
            "[a lower speed limit would protect them every day|safer crossings would do more for them]",
        ),
        ("street markets are popular", "[we can have those without a weekly ban|four or five a year are quite enough]"),
        (
            "we all have to think about the climate",
            "[longer detours do not help it|this changes almost nothing about it]",
        ),
        ("other towns have tried it", "[they have better buses than we do|many of them are larger and have a tram]"),
    ),
)
"""Objections with a reply to each: by those for it, by those against it."""

PADDING: tuple[str, ...] = (
    "it is just [better|how it is|what I think]",
    "everyone knows that",
    "[that is a fact|that's true]",
    "cars are cars and [that's it|you can't change it]",
    "I don't know [why people don't get it|what else to say about that]",
    "there are {many} things [to think about|you could say about this]",
    "some people think this and some people think that",
    "it depends on [the person|a lot of things|how you look at it]",
    "and so on[| and so on]",
    "you know what I mean",
    "it is a big thing [nowadays|in life|in the world]",
    "people have to think about it [more|properly|for once]",
    "in the old days there were no cars and people were [ok|fine|happy] too",
)
"""Sentences that say nothing."""

ASIDES: tuple[str, ...] = (
    "my [uncle|cousin|neighbour] has a [blue|red|green] [van|car] and it is always breaking down",
    "my favourite car is a [sports car|jeep] because it is fast",
    "when I am [older|eighteen] I want to get a [motorbike|fast car|car]",
    "we went to the [sea|zoo|lake] last summer and it took [five|four|six] hours in the car and my brother was sick",
    "my [best friend|sister] lives [next to the station|near the shop] and we play games after school",
    "I had [pizza|chips|a burger] in town [last week|on Saturday] and it was [really good|so good]",
    "we also have a dog and he hates [cars|the car|bikes]",
    "my teacher comes to school [on a bike|by train] even when it rains",
    "in [films|games] there are flying cars and that would be [cool|so cool]",
    "my [dad|grandad] used to fix cars and he knows everything about them",
    "I saw a [video|programme] about [electric cars|a race] but I forgot what they said",
    "it was raining [yesterday|all week] so we couldn't do anything",
    "my [brother|sister] is learning to drive and nearly hit a [tree|bin|wall]",
    "I don't have a [bike|phone] at the moment because it got [stolen|broken]",
    "the best thing in town is the [cinema|skate park|sweet shop]",
    "our [bus driver|teacher] is [really funny|so grumpy] in the morning",
)
"""Sentences that lead away from the question."""

RESTATEMENTS: tuple[tuple[str, ...], tuple[str, ...]] = (
    (
        "like I said it is a {good} idea",
        "so [that is why I think|that's why I say] they should do it",
        "it is a good idea to [have a day with no cars|ban cars for one day]",
        "as I said before, a day without cars is {good}",
        "so yes they should [do it|close it]",
    ),
    (
        "like I said it is a bad idea",
        "so [that is why I think|that's why I say] they should not do it",
        "it is not a good idea to [have a day with no cars|ban cars for one day]",
        "as I said before, people need their cars",
        "so no they should [not do it|leave it like it is]",
    ),
)
"""The position once more, for writers who repeat themselves."""

CLOSINGS: tuple[Tiers, Tiers] = (
    (
        (
            "so that is why I think it is [good|a good idea]",
            "that's all I [have to say|can think of]",
            "so I hope they do it",
            "[thank you for reading|the end]",
            "in conclusion cars should not be in town [that day|on that day]",
        ),
        (
            "in conclusion, I {think} that the {plan} is good for [the town|most people] and that we should try it",
            (
                "to sum up, a [day without cars|car-free day] has more [advantages than disadvantages|good sides than "
                "bad sides]"
            ),
            "for [these|all these] reasons, I [hope that the council will say yes|would vote for the {plan}]",
            "all in all, I {think} it would make our town a [better|nicer|healthier] place",
        ),
        (
            (
                "a town that can spare its cars for one day in seven may [find that it misses them less than it "
                "feared|find that it wants to spare them more often|discover that it never needed quite so many]"
            ),
            (
                "taken together, these points suggest that the {plan} is less a [ban|prohibition] than an invitation, "
                "and one we [should|would be foolish not to] accept"
            ),
            (
                "the council should therefore begin with a trial of [six months|one summer|twelve months], count what "
                "changes, and let the [results|streets] speak for themselves"
            ),
            (
                "[in the end|ultimately], the question is not whether we can [do|manage] without cars for a day, but "
                "what we might [rediscover|find] when we do"
            ),
            (
                "if the price is a [short walk|little planning] once a week, it is one that [this town can easily "
                "afford|we can all afford] to pay"
            ),
        ),
    ),
    (
        (
            "so that is why I think it is [bad|a bad idea]",
            "that's all I [have to say|can think of]",
            "so I hope they don't do it",
            "[thank you for reading|the end]",
            "in conclusion cars should be [allowed|in town] every day",
        ),
        (
            (
                "in conclusion, I {think} that the {plan} is bad for [the town|many people] and that we should find "
                "another way"
            ),
            (
                "to sum up, a [day without cars|car-free day] has more [disadvantages than advantages|bad sides than "
                "good sides]"
            ),
            "for [these|all these] reasons, I [hope that the council will say no|would vote against the {plan}]",
            "all in all, I {think} it would make life in our town [harder|more difficult] for many people",
        ),
        (
            (
                "a town that wants fewer cars should first [give people|offer its people] a reason to leave them at "
                "home; a ban gives them only a reason to [go elsewhere|stay away]"
            ),
            (
                "taken together, these points suggest that the {plan} mistakes a symptom for the disease, and [we "
                "should look for a better cure|the town deserves a better doctor]"
            ),
            (
                "the council should therefore [spend its energy on|begin with] [better buses|safe crossings and "
                "frequent buses], and return to the question when there is something to replace the car"
            ),
            (
                "[in the end|ultimately], the question is not whether we would like [quieter|cleaner] streets, but who "
                "should be made to pay for them"
            ),
            (
                "good intentions deserve a better plan than this one, and so do the people [who would have to live "
                "with it|it would leave behind]"
            ),
        ),
    ),
)
"""Last sentences: for, against."""
