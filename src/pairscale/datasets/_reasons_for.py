"""Reasons for a car-free day, as the synthetic essays give them (data only; ``_phrases`` explains the notation)."""

from __future__ import annotations

from pairscale.datasets._phrases import Idea

__all__ = ["FOR"]

_AIR = Idea(
    claim=(
        ("the air would be [better|cleaner|nicer]", "it would be better for your health", "it would not smell so bad"),
        (
            "the air in {town} would be cleaner on a day without cars",
            "a day without cars would mean less pollution",
            "a car-free day would be healthier for everyone who walks around there",
        ),
        (
            "a car-free day would give shoppers and schoolchildren noticeably cleaner air",
            (
                "closing the centre would cut pollution in the very place where [people are most exposed to it|it does "
                "the most harm]"
            ),
            "a weekly pause would spare residents some of the fumes that they now take for granted",
        ),
    ),
    ground=(
        ("cars make {lots} smoke", "the smoke from cars is {bad} for you", "cars are dirty and they smell"),
        (
            "cars sitting in traffic give off fumes all day",
            "the exhaust from so many cars makes the air dirty",
            "most of the pollution comes from engines",
        ),
        (
            (
                "queuing engines release their fumes at exactly the height where [small children|toddlers in "
                "pushchairs] breathe"
            ),
            "the narrow streets trap exhaust between the buildings",
            "stationary traffic pollutes far more than most drivers [realise|care to admit]",
        ),
    ),
    evidence=(
        (
            "my [cousin|friend|little brother] has asthma and he is always coughing",
            "you can smell it when you walk [to school|past the lights|to the shop] and it is disgusting",
            "one time I was walking and a [lorry|van|bus] went past and I couldn't breathe",
        ),
        (
            (
                "my [sister|cousin] has asthma, and she often needs her inhaler when we wait [at the crossing|by the "
                "bus stop]"
            ),
            "on [Saturday|Friday] afternoons you can actually taste the exhaust near the [market|station]",
            "our science class looked at the dust on the school windows, and the side facing the road was the dirtiest",
        ),
        (
            (
                "when our science class hung sticky cards along the high street, those nearest the junction turned "
                "grey within [four|five|three] days, while those in the park stayed [almost white|pale]"
            ),
            (
                "my [neighbour|aunt], a nurse at the [local clinic|health centre], says that calls about breathing "
                "trouble peak on still days when the traffic is heaviest"
            ),
            (
                "the monitor outside the library has [twice|three times] this year shown readings above the "
                "recommended limit, [each time on a market day|always during the evening rush]"
            ),
        ),
    ),
    impact=(
        ("and that is {bad} for [everyone|all of us]", "nobody wants to breathe that"),
        ("this would be {good} for old people and babies most of all", "clean air is something that everybody needs"),
        (
            "a single day cures nobody, yet fifty-two of them a year would be a {significant} reduction",
            "clean air, unlike a parking space, is something that nobody can [buy|choose] for themselves",
        ),
    ),
)

_SAFETY = Idea(
    claim=(
        ("{kids} would be [safe|safer]", "you wouldn't get run over", "it would be less dangerous"),
        (
            "a day without cars would be much safer for {kids}",
            "there would be fewer accidents if cars had to stay out",
            "parents would not have to worry so much on a car-free day",
        ),
        (
            "a car-free day would give {kids} back a freedom that they have lost",
            "keeping traffic out would bring down the weekly toll of bruises and near misses",
            "[people|families] could cross the square at their own pace if the cars were gone",
        ),
    ),
    ground=(
        (
            "cars go too fast",
            "drivers don't look where they are going",
            "there are cars [all over the place|everywhere]",
        ),
        (
            "drivers are often in a hurry and do not look properly",
            "the roads in the middle of town are narrow and {busy}",
            "there is not enough room on the pavement for everyone",
        ),
        (
            "impatient drivers treat the crossing by the [church|post office] as a suggestion",
            "the pavements are so narrow that anyone with a pushchair is forced into the road",
            "even careful motorists cannot see a small child stepping out between two parked vans",
        ),
    ),
    evidence=(
        (
            "I nearly got hit [once|last year|one time] and it was [scary|so scary]",
            "my friend got knocked off his bike and he hurt his [arm|leg|knee]",
            "my mum never lets me go there [on my own|by myself] because of the cars",
        ),
        (
            "last [year|winter|spring] a boy in my [class|school] was knocked off his bike outside the [bakery|bank]",
            "my grandmother waits for several minutes before she dares to cross [Mill Street|Bridge Street]",
            (
                "my little [brother|sister] is not allowed to walk to the library alone, even though it is only five "
                "minutes away"
            ),
        ),
        (
            (
                "according to the [local paper|council's own figures], [eleven|fourteen|nine] people were injured last "
                "year on a stretch of road that takes [two|three] minutes to walk"
            ),
            (
                "when the [gas repairs|burst pipe] closed Mill Street for a week last [spring|autumn], my "
                "seven-year-old [cousin|neighbour] walked to school without an adult for the first time"
            ),
            (
                "in [Ellerby|Stanmoor], where a similar scheme began [two|four] years ago, not one pedestrian has been "
                "hurt on a car-free day"
            ),
        ),
    ),
    impact=(
        ("safety is the {big} thing", "someone could get killed"),
        (
            "nobody should be afraid of [walking through their own town|crossing the road]",
            "one accident is already too many",
        ),
        (
            "a town that is safe for its youngest residents is, almost by definition, safe for everyone else",
            "the confidence to walk alone cannot be taught in a classroom; it has to be practised in the street",
        ),
    ),
)

_TRADE_UP = Idea(
    claim=(
        ("the shops would get more money", "more people would go to the shops", "it is {good} for shops"),
        (
            "the shops and cafes would get more customers",
            "it could be {good} for {shops}",
            "more visitors would come and spend their money in {town}",
        ),
        (
            "{shops} would stand to gain rather than lose",
            "visitors would linger, and visitors who linger tend to spend",
            "the day could breathe new life into a high street that has been struggling for years",
        ),
    ),
    ground=(
        ("people would walk around and buy stuff", "people like shopping", "you can stop and look at things"),
        (
            "people who walk past a shop are more likely to go in",
            "there would be space for tables and market stalls outside",
            "it would be more pleasant to shop without traffic",
        ),
        (
            "nobody has ever made an unplanned purchase while hunting for a parking space",
            "people on foot notice window displays that drivers never see",
            "cafes could spread their tables across ground that now earns nothing but parking fines",
        ),
    ),
    evidence=(
        (
            "when I go with my mum we always [get|buy] [a cake|chips|a drink] and stuff",
            "there was a market once and it was [packed|really full] and everyone was buying things",
            "my dad says the shops need the money",
        ),
        (
            (
                "when there was a [street market|Christmas fair] last year, the [bakery|ice cream shop] sold out "
                "before [lunch|three o'clock]"
            ),
            (
                "my uncle works in a [cafe|shoe shop], and he says that the best days are when the street is closed "
                "for the parade"
            ),
            "in the next town they tried something similar, and several new cafes have opened since then",
        ),
        (
            (
                "during last summer's street fair the [bakery|bookshop] on the corner took [twice|nearly twice] its "
                "usual Saturday income, and its owner has asked for [another|a second one] ever since"
            ),
            (
                "in neighbouring [Harwick|Ellerby], traders who had signed a petition against a car-free Sunday were "
                "[asking for a second day|defending it] within [eighteen months|a year]"
            ),
            (
                "of the [twelve|fifteen] shopkeepers my class interviewed, [eight|nine|ten] guessed that most "
                "customers arrive by car; a count at their doors showed that [barely a third|only about a quarter] did"
            ),
        ),
    ),
    impact=(
        ("so everyone gets money", "and then there would be more shops"),
        ("this would also create jobs for young people", "a town with empty shops is sad for everybody"),
        (
            "what looks like a sacrifice for trade may therefore prove to be an investment",
            "money spent in these streets stays in them, which is more than can be said of the retail park",
        ),
    ),
)

_COMMUNITY = Idea(
    claim=(
        ("it would be [fun|more fun|a nice day]", "you could hang out with your friends", "there would be more to do"),
        (
            "a day without cars would give people more chances to meet and talk",
            "there could be music, games and markets in the street",
            "it would bring the {town_n} together",
        ),
        (
            "closing the streets would make the square a place to meet instead of a place to get through",
            "a car-free day would give the {town_n} back a shared space that it scarcely knows it has lost",
            "a car-free day would let neighbours who normally see one another through a windscreen stop and talk",
        ),
    ),
    ground=(
        ("you can play football in the road", "there is nothing to do here", "everyone would be outside"),
        (
            "there would be space in the street for events",
            "at the moment there is nowhere for families to sit outside",
            "people are usually in a rush when they are in their cars",
        ),
        (
            (
                "streets are the largest public space that we own, and at present [they are little more than a car "
                "park|we give nearly all of them to parked metal]"
            ),
            "conversation is impossible beside a line of growling engines",
            "a community needs somewhere to happen",
        ),
    ),
    evidence=(
        (
            "there was a [party|fair] in my street and it was the best day ever",
            "me and my friends would [go there|hang out there] every week",
            "they could have a [band|bouncy castle|football game] or something",
        ),
        (
            "last summer our street had a party, and I met neighbours whom I had never spoken to before",
            "my drama club could perform outside the [town hall|library], and people could watch for free",
            "at the summer fair there were three bands and a chess table, and [even my dad|nobody] wanted to go home",
        ),
        (
            (
                "at last [June's|year's] street party I learned that the quiet man at number [nine|twelve|forty] had "
                "once been a lighthouse keeper; we had been neighbours for [six|seven|ten] years"
            ),
            (
                "when the [bridge repairs|film crew] emptied Market Street for a weekend, people carried out chairs "
                "without being asked, and by evening someone had found a [piano|violin]"
            ),
            (
                "the [youth orchestra|drama club], which now rehearses to an audience of stacked chairs, has already "
                "[offered|volunteered] to play on the town hall steps"
            ),
        ),
    ),
    impact=(
        ("and everyone would be happy", "it would just be nice"),
        ("people who know each other also help each other", "a town should be more than roads and car parks"),
        (
            "loneliness is rarely discussed at meetings about transport, but perhaps it should be",
            "chance meetings look trivial, yet they are what [turns|changes] a collection of houses into a town",
        ),
    ),
)

_HABITS = Idea(
    claim=(
        ("it is {good} for the planet", "people would walk more", "people would get more exercise"),
        (
            "a car-free day would get people used to walking or cycling",
            "it would be {good} for the environment",
            "the {plan} might get some people to walk or take the bus",
        ),
        (
            "a car-free day might show people that many of their journeys never needed a car at all",
            "such a day would quietly change habits that no poster campaign has ever touched",
            "the greatest benefit might be felt on the other six days",
        ),
    ),
    ground=(
        ("people are lazy", "cars are {bad} for the planet", "everyone just drives everywhere"),
        (
            "many people drive even when the distance is very short",
            "everyone has to do something about climate change",
            "walking is better than driving in many ways",
        ),
        (
            "habits change only when something interrupts them",
            "a surprising number of trips in town are shorter than a [fifteen|twenty]-minute walk",
            "we [reach for|pick up] the car keys out of routine rather than need",
        ),
    ),
    evidence=(
        (
            "my dad drives to the shop and it is like two minutes away",
            "I walk to school every day and I'm fine",
            "the ice is melting and the polar bears are dying",
        ),
        (
            "my mother drives to the gym, although it is only ten minutes from our house on foot",
            "when our car was being repaired, we walked everywhere for a week, and it was easier than we had expected",
            "at my school we had a walk-to-school week, and some [pupils|students] still walk now",
        ),
        (
            (
                "when our car spent a [fortnight|month] in the garage, my father [grumbled|complained] for three days "
                "and then bought a bicycle, which he has ridden to work ever since"
            ),
            (
                "our school's walk-to-school week was meant to last five days; [a year later|two years later], the "
                "bicycle rack is still full"
            ),
            (
                "a tally that my class kept for a week showed that [almost half|four in ten] of our families' car "
                "journeys covered less than two kilometres"
            ),
        ),
    ),
    impact=(
        ("we have to save the earth", "it is not that hard to walk"),
        (
            "small changes like this can make a big difference in the end",
            "if every town did this, it would really matter",
        ),
        (
            "no single town can [halt|stop] climate change, but no town is excused from trying either",
            "change that begins as a rule can end as a preference",
        ),
    ),
)

_CALM = Idea(
    claim=(
        ("it would be [quiet|quieter]", "you could hear yourself", "it would be more [chilled|relaxed]"),
        (
            "a day without cars would be much quieter",
            "people could relax in {town} for once",
            "a car-free day would be less stressful for everybody",
        ),
        (
            "a car-free day would return a measure of calm to streets that have forgotten it",
            "even one quiet day a week would be a relief to those who live above the shops",
            "a weekly pause would do more for tired nerves than any number of flower beds",
        ),
    ),
    ground=(
        ("cars are so loud", "drivers beep all the time", "it gives you a headache"),
        (
            "the noise of the traffic never stops",
            "you have to shout when you talk to somebody in the street",
            "drivers are always [beeping|honking] at each other",
        ),
        (
            "the roar of engines has become so constant that we notice it only when it stops",
            "noise wears people down long before they think of complaining about it",
            "the stone fronts of the old houses throw every [horn|engine] back into the street",
        ),
    ),
    evidence=(
        (
            "my [aunt|friend|cousin] lives there and she can't sleep",
            "there was this motorbike and it was so loud my ears hurt",
            "when it snowed there was no cars and it was really nice",
        ),
        (
            "my aunt lives above the [pharmacy|bank], and she cannot open her windows in summer",
            (
                "when it snowed last winter and nobody could drive, the whole town was [quiet|peaceful], and people "
                "were smiling"
            ),
            "our music lessons are next to the main road, and sometimes we have to stop because of the [lorries|noise]",
        ),
        (
            (
                "last [January|February], when snow kept every car at home, my grandmother heard the church clock from "
                "her kitchen for the first time in [ten|twelve|fifteen] years"
            ),
            (
                "my aunt, who lives above the pharmacy, has not opened a front window between [April|May] and "
                "September since she moved in"
            ),
            (
                "in the classroom that faces the crossroads, our teacher [pauses|stops] [five or six|seven or eight] "
                "times a lesson until the lorries have passed"
            ),
        ),
    ),
    impact=(
        ("peace and quiet is {good}", "I like it when it's quiet"),
        ("everybody needs some peace from time to time", "noise makes people tired and angry"),
        (
            "silence is not a luxury, but our town has begun to treat it as one",
            "people who can hear one another are also more inclined to be kind to one another",
        ),
    ),
)

FOR: tuple[Idea, ...] = (_AIR, _SAFETY, _TRADE_UP, _COMMUNITY, _HABITS, _CALM)
"""Reasons to close the centre to cars."""
