"""Reasons against a car-free day, as the synthetic essays give them (data only; ``_phrases`` explains the notation)."""

from __future__ import annotations

from pairscale.datasets._phrases import Idea

__all__ = ["AGAINST"]

_TRADE_DOWN = Idea(
    claim=(
        ("the shops would lose {lots} money", "nobody would go to the shops", "it is {bad} for the shops"),
        (
            "{shops} would lose customers",
            "many customers would go somewhere else instead",
            "some small shops might even have to close",
        ),
        (
            "{shops} would pay the price for somebody else's good intentions",
            "trade would simply drift to the retail park on the ring road",
            "a high street that is already fragile would lose one of its few profitable days",
        ),
    ),
    ground=(
        ("you can't carry all your shopping", "people can't park", "people won't walk that far"),
        (
            "it is hard to carry heavy bags home on the bus",
            "people can park for free at the big supermarket",
            "most customers from the villages come by car",
        ),
        (
            "shoppers with a boot to fill will always choose the place that lets them fill it",
            "families in the surrounding villages have no realistic way to arrive except by car",
            "a small business survives on margins too thin to absorb a lost day each week",
        ),
    ),
    evidence=(
        (
            "my mum buys {lots} food and we need the car for it",
            "the [toy shop|shoe shop|sweet shop] already closed and it was my favourite",
            "my uncle has a shop and he would be really angry",
        ),
        (
            "my aunt has a [flower|shoe|toy] shop, and she says that Saturday customers almost always come by car",
            "when the road was closed for repairs last year, the [bakery|butcher] had to send two workers home",
            "my family does one big shop a week, and we could never carry it all [on foot|on the bus]",
        ),
        (
            (
                "when roadworks closed Bridge Street for [five|six] weeks, the hardware shop lost [a third|nearly a "
                "third] of its income and has never [rehired|replaced] the assistant it let go"
            ),
            (
                "my aunt, who runs a [flower|fabric] shop by the square, keeps a tally: last month [seven|eight] in "
                "every ten large orders were loaded straight into a car"
            ),
            (
                "[Harwick|Stanmoor] tried a similar ban and abandoned it after [nine|ten] months, by which time "
                "[three|four] shops on its main street stood empty"
            ),
        ),
    ),
    impact=(
        ("and then there is no shops left", "people need money to live"),
        ("if shops close, people lose their jobs", "a town centre without shops is not worth visiting"),
        (
            "a centre without cars may be charming, but a centre without shops is merely empty",
            "once a shop has gone, no amount of fresh air will bring it back",
        ),
    ),
)

_ACCESS = Idea(
    claim=(
        ("old people can't go to town", "it's not fair on old people", "some people would be stuck at home"),
        (
            "it would be unfair to old and disabled people",
            "some people would not be able to get to {town} at all",
            "elderly people would have to stay at home that day",
        ),
        (
            "the burden would fall on precisely those who are least able to carry it",
            "elderly and disabled residents would in effect be told to stay at home",
            "a measure that claims to open up the streets would close them to some of us",
        ),
    ),
    ground=(
        ("they can't walk far", "not everyone can ride a bike", "their legs hurt"),
        (
            "not everyone is able to walk long distances",
            "a car is the only way some people can get around",
            "the bus stop is too far away for someone with a [walking stick|wheelchair]",
        ),
        (
            "a distance that seems trivial to a healthy teenager can be insurmountable with a walking frame",
            "for someone in constant pain, a car is not a luxury but a pair of legs",
            "exemptions on paper are of little use to a person who does not know how to apply for them",
        ),
    ),
    evidence=(
        (
            "my [nan|grandma|gran] can't walk and she needs the car",
            "my neighbour is in a wheelchair so how would he get there",
            "what if you break your leg or something",
        ),
        (
            (
                "my grandfather has a bad hip, and he can only visit the [bank|market] because my father drives him to "
                "the door"
            ),
            "my neighbour uses a wheelchair, and the ramp on the bus is often broken",
            (
                "my grandmother meets her friends in the cafe every week, and she could not get there without a "
                "[lift|taxi]"
            ),
        ),
        (
            (
                "my grandfather, whose world has shrunk to the chemist, the bank and one cafe table, reaches all three "
                "only because my mother can stop [at the door|outside]"
            ),
            (
                "of the [eleven|fourteen] stops on our bus route, I counted [just two|only three] with a kerb that a "
                "wheelchair can manage"
            ),
            (
                "a neighbour with [arthritis|a heart condition] told me that she had needed [five|six] phone calls and "
                "a doctor's letter to get her last parking permit"
            ),
        ),
    ),
    impact=(
        ("they are people too", "and that is just mean"),
        (
            "a town has to be there for all its people, not just the fit ones",
            "we should think about them before we decide",
        ),
        (
            "a public space that excludes part of the public hardly deserves the name",
            "any policy should be judged first by what it asks of the weakest",
        ),
    ),
)

_DISPLACED = Idea(
    claim=(
        (
            "it won't even work",
            "there would be more traffic in other places",
            "the cars would just go [somewhere else|round]",
        ),
        (
            "the traffic would only move to other streets",
            "the problem would not be solved, only moved",
            "people who live near the centre would have even more cars outside their houses",
        ),
        (
            "the ban would not remove a single car; it would merely push it round the corner",
            "residential streets would inherit the congestion that the square gets rid of",
            "the centre would buy its peace at the expense of the [quieter|poorer] streets around it",
        ),
    ),
    ground=(
        ("people still need to drive", "people will just park in other roads", "you can't make cars disappear"),
        (
            "drivers would use the smaller roads around the centre",
            "people still have to get to the other side of town",
            "there are not enough car parks outside the centre",
        ),
        (
            "the journeys themselves do not vanish when a road is closed",
            "a driver who must cross the river will find another route, however unsuitable",
            "the surrounding lanes were laid out for [carts|bicycles] rather than for diverted lorries",
        ),
    ),
    evidence=(
        (
            "they closed a road near me and it was [a mess|a nightmare|so bad]",
            "my street is already full of cars and you can't park",
            "we were stuck in traffic for like an hour [once|one time]",
        ),
        (
            (
                "when Mill Street was closed for the [parade|marathon], cars were queuing in front of my house the "
                "whole afternoon"
            ),
            "my road is close to the centre, and on market days strangers already park across our drive",
            "last year there were roadworks, and my bus to school took [twice as long|forty minutes instead of twenty]",
        ),
        (
            (
                "on the day of the [marathon|carnival], which closed the same roads, I counted [ninety|seventy|eighty] "
                "cars in ten minutes outside the primary school on Orchard Lane"
            ),
            (
                "during the bridge repairs an ambulance needed [nineteen|seventeen] minutes to reach our street, "
                "[three times|twice] what it usually takes"
            ),
            (
                "[Ellerby|Harwick] published its own figures after a year: traffic in the square fell to nothing, "
                "while on the ring road it rose by [almost a fifth|more than a tenth]"
            ),
        ),
    ),
    impact=(
        ("so what is the point", "then it is the same thing again"),
        ("that would not be good for the environment either", "it is not right to make other streets suffer"),
        (
            "to move a nuisance is not to solve it",
            "those who would suffer were not asked, and they do not live where the photographs will be taken",
        ),
    ),
)

_TRANSPORT = Idea(
    claim=(
        ("people can't get to town", "you would have to wait for ages", "people would be late for stuff"),
        (
            "many people would have no way to get to {town}",
            "it would be difficult for people who live outside the town",
            "the buses would be far too full",
        ),
        (
            "the plan would demand alternatives that do not yet exist",
            "anyone who lives beyond the last bus stop would effectively be cut off",
            "the council would be taking something away before it had put anything in its place",
        ),
    ),
    ground=(
        ("the bus is always late", "there is no bus where I live", "the bus costs {lots} money"),
        (
            "the buses only come once an hour",
            "a bus ticket for the whole family is expensive",
            "there are hardly any safe cycle paths",
        ),
        (
            "our buses are infrequent at the best of times and absent after [six|seven] in the evening",
            "a return ticket for a family of four costs more than [a day's parking|an afternoon in the car park]",
            "the only cycle path we have ends abruptly at a roundabout",
        ),
    ),
    evidence=(
        (
            "I waited for the bus [yesterday|last week] and it never came",
            "it's like five pounds just to go to town",
            "my friend lives on a farm and there is nothing there",
        ),
        (
            "last week I waited [forty|fifty] minutes for a bus, and then it was too full to let me on",
            "my best friend lives in a village where there are only three buses a day",
            "my mother works late at the hospital, and there is no bus when she finishes",
        ),
        (
            (
                "to reach my Saturday job by [nine|half past eight], I would have to catch a bus that was withdrawn "
                "[two|three] years ago"
            ),
            (
                "a friend in [Lower Thorne|Marsh End], barely [eight|six] kilometres away, is served by [three|two] "
                "buses a day, the last of which leaves before [school ends|the shops close]"
            ),
            (
                "my mother, a [nurse|hospital cleaner], finishes at eleven at night, by which time the only vehicle at "
                "the bus station is the [street sweeper|rubbish lorry]"
            ),
        ),
    ),
    impact=(
        ("it is so annoying", "they should fix the bus first"),
        (
            "first we need better buses, and then we can talk about this again",
            "people cannot change if there is no other way",
        ),
        (
            "to ban the car before improving the bus is to put the punishment before the crime",
            "people choose differently when they have a choice, and at present they have none",
        ),
    ),
)

_WORK = Idea(
    claim=(
        (
            "people can't do their jobs",
            "people would get in trouble with their boss",
            "it's annoying for people who work",
        ),
        (
            "it would make life harder for people who have to work that day",
            "some people would not be able to do their jobs",
            "deliveries would become a {problem}",
        ),
        (
            "the livelihoods of people who cannot work without a vehicle would be treated as an afterthought",
            "a rule meant for leisurely shoppers would fall hardest on those who are working",
            "the working day of many tradespeople would become a puzzle without a solution",
        ),
    ),
    ground=(
        ("people need a car for work", "you can't take tools on the bus", "they have to get to work"),
        (
            "builders and plumbers need their vans for their tools",
            "the shops need deliveries every day",
            "not every job can be done from home or by bus",
        ),
        (
            "a plumber cannot carry a boiler on the bus",
            "fresh bread, medicines and fish do not deliver themselves",
            "those who mend, deliver and care for a living carry their work with them",
        ),
    ),
    evidence=(
        (
            "my dad is a [builder|plumber|driver] and he needs his van every day",
            "my sister works in a [shop|cafe] there and she gets up at five already",
            "what if you order a pizza and it can't come",
        ),
        (
            "my father is an electrician, and on some days he has to visit [four|five|six] houses in the centre",
            "the restaurant where my brother works gets its fish and vegetables every morning by van",
            "my uncle looks after old people in their homes, and he has only a few minutes to get from one to the next",
        ),
        (
            (
                "my father repairs [boilers|lifts], and on a typical [Saturday|day] [four|five] of his [seven|eight] "
                "calls are within sight of the town hall clock"
            ),
            (
                "the carer who visits my great-aunt has [eleven|twelve] minutes between appointments, and the walk "
                "from the nearest car park would take nine of them"
            ),
            (
                "the [baker|florist] on the corner unloads at [ten|eleven], because her wholesaler serves [four|five] "
                "other towns before ours and will not change the route"
            ),
        ),
    ),
    impact=(
        ("people have to work you know", "that would be so annoying for them"),
        ("the council should help working people, not stop them", "rules should not make it harder to earn a living"),
        (
            "it is easy to admire an empty street when one's wages do not depend on reaching it",
            "a town that makes itself difficult to work in will soon be short of workers",
        ),
    ),
)

_CHOICE = Idea(
    claim=(
        ("you should be allowed to drive where you want", "they can't just ban cars", "people would get angry"),
        (
            "people should be free to decide how they travel",
            "a ban would make many people angry",
            "it would be better to ask people to drive less",
        ),
        (
            "persuasion would achieve more than prohibition",
            "a ban would breed resentment rather than better habits",
            "the council would do better to reward people than to forbid them things",
        ),
    ),
    ground=(
        ("it's a free country", "they already pay {lots} money for cars", "nobody likes being told what to do"),
        (
            "people already pay high taxes for using the road",
            "nobody likes to be forced into something",
            "most people know best how they want to travel",
        ),
        (
            "people who feel forced tend to look for a way round rather than a better way",
            "habits last only when they have been chosen",
            "every ban must be explained, policed and paid for, week after week",
        ),
    ),
    evidence=(
        (
            "my dad says it is a stupid idea and he has been driving for twenty years",
            "it's like when they banned [phones|hats] at school and everyone did it anyway",
            "my [mum|grandad] would never stop driving, no way",
        ),
        (
            "at my school phones were banned last year, and now everyone just hides them better",
            "my father says that he would take the bus if it was cheaper, but not because somebody orders him to",
            "when the council made one street one-way, people complained for months and some drivers ignored the sign",
        ),
        (
            (
                "when free bus travel was offered for one [month|weekend] last [spring|autumn], parking in the centre "
                "fell by [a fifth|a quarter] without anyone being banned from anything"
            ),
            (
                "our school banned phones [two years|eighteen months] ago, and all that changed was the "
                "[number|quality] of the hiding places; a later offer of an [extra|longer] break for phone-free "
                "classes worked within a week"
            ),
            (
                "the barriers and wardens alone would cost, by the council's own estimate, as much as [three|two] new "
                "[buses|crossings] a year"
            ),
        ),
    ),
    impact=(
        ("nobody asked us", "they can't just do that"),
        ("rules only work if people understand them", "the council should listen to the people first"),
        (
            "if the aim is fewer cars, there are kinder and cheaper ways of reaching it",
            "a choice that people make for themselves is one they will still be making in ten years",
        ),
    ),
)

AGAINST: tuple[Idea, ...] = (_TRADE_DOWN, _ACCESS, _DISPLACED, _TRANSPORT, _WORK, _CHOICE)
"""Reasons to keep it open."""
