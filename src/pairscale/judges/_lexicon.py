"""The word lists of the lexical judge: general English, written by hand for it, and data only.

They are short on purpose: a list is a sample of its kind, not a dictionary. A change here changes verdicts, so it goes
together with a new name in :data:`pairscale.judges.lexical.MODEL`.
"""

from __future__ import annotations

__all__ = [
    "ABBREVIATIONS",
    "ACADEMIC_STEMS",
    "COMMON",
    "CONNECTIVES",
    "CONNECTIVE_PHRASES",
    "MISSPELT",
    "PHRASE_STARTS",
    "SPELT_WELL",
    "SUBORDINATORS",
    "VAGUE",
]


def _words(block: str) -> frozenset[str]:
    return frozenset(block.split())


ABBREVIATIONS = _words("""
    al approx cf dr e.g eg etc fig i.e ie jr mr mrs ms p pp prof sr st vol vs
""")
"""Lower-case words whose full stop does not end a sentence."""

COMMON = _words("""
    a ability able about above accept accident account across act action active activity actually add address adult
    advice afraid after again against age ago agree air all allow almost alone along already also although always am
    among amount an and angry animal animals another answer answers any anyone anything anyway appear apple are area
    aren't arm arms around arrive art article as ask asked asking asks at attention author average away baby back bad
    bag ball bank base basic be beach beat beautiful became because become bed been before began begin beginning
    begins behavior behaviour behind being belief believe believed believes belong below benefit benefits best better
    between big bigger biggest bird bit black blood blue board body book books born both bottom bought box boy boys
    brain bread break breakfast bring brings broken brother brought build building buildings built bus business busy
    but buy by call called came camp can can't cannot car card care careful carefully carry cars case cat catch caught
    cause caused causes center centre century certain certainly chance change changed changes changing character cheap
    check child children choice choices choose church circle cities city class classes classroom clean clear clearly
    climb close clothes cold college color colour come comes comfortable coming common community company compare
    complete completely computer computers concern condition consider contain control cook cool corner correct cost
    could couldn't count countries country couple course cover create created creates crowd cry culture cup current
    cut daily dance danger dangerous dark date daughter day days dead deal death decide decided decision decisions
    deep depend depends describe desk details develop development did didn't die difference differences different
    difficult dinner direct direction dirty discover discuss disease distance do doctor does doesn't dog dogs doing
    dollar don't done door doubt down draw dream dress drink drive driver drop dry during each early earn earth easier
    easily east easy eat eating economy edge education effect effects effort eight either electric electricity else
    employee empty end ended energy enjoy enjoyed enough enter entire environment equal escape especially essay even
    evening event events ever every everyone everything evidence exactly exam example examples excellent except
    excited exciting exercise expect expensive experience experiences explain explained explains extra eye eyes face
    fact facts fail fair fall families family famous far farm farmer fast faster father favorite favourite fear feel
    feeling feelings feels feet fell felt few field fight figure fill final finally find finding finds fine finish
    finished fire first fish fit five fix floor flower fly focus follow following food foods foot for force foreign
    forest forever forget form forward found four free freedom fresh friend friendly friends from front fruit full fun
    funny further future game games garden gas gave general generally get gets getting girl girls give given gives
    glass go goal goals god goes going gold gone good got government grade grades grandmother grass great green grew
    ground group groups grow growing grown growth guess guide had hadn't hair half hand hands happen happened happens
    happiness happy hard harder hardly has hasn't hat hate have haven't having he he'd he'll he's head health healthy
    hear heard heart heat heavy held hello help helped helpful helping helps her here hers herself hidden high higher
    hill him himself his history hit hold hole holiday home homes homework honest hope horse hospital hot hotel hour
    hours house houses how however huge human humans hundred hungry hurt husband i i'd i'll i'm i've ice idea ideas if
    image imagine importance important impossible improve improved in include included includes including increase
    industry information inside instead interest interested interesting internet into introduce is island isn't issue
    it it's its itself job jobs join judge jump just keep keeping keeps kept key kid kids kill kind kinds king kitchen
    knew know knowing knowledge known knows lack lady lake land language large larger last late later laugh law lay
    lead leader leaders leads learn learned learning learns least leave leaves leaving led left leg less lesson
    lessons let let's letter letters level library lie life light like liked likes limit line list listen little live
    lived lives living local long longer look looked looking looks lose lost lot lots loud love loved low lower luck
    lunch machine made main major make makes making man manage manner many map mark market marry matter may maybe me
    meal mean meaning means meant measure meat media medical medicine meet meeting member memory men mention message
    met method middle might mile milk million mind mine minute minutes miss mistake mistakes modern moment money month
    months moon more morning most mother mountain mouth move moved movement moves movie movies moving much music must
    my myself name narrow nation national natural nature near nearly necessary neck need needs negative neighbor
    neighbour neither nervous never new news next nice night nine no nobody noise none nor normal normally north nose
    not note nothing notice now number numbers object ocean of off offer office often oil old older on once one only
    onto open opinion opinions opportunity opposite or order organization other others our ours ourselves out outside
    over own page paid pain paint paper paragraph parent parents park part particular partner parts party pass passed
    past pay paying peace pen people per perfect performance perhaps period person personal phone phones picture piece
    place places plan plane planet plans plant plants play played player players playing plays please point points
    police political poor popular population position positive possible possibly pound power powerful practice prepare
    present president pressure pretty prevent price private probably problem problems process produce product program
    project promise proper protect proud prove provide provided provides public pull purpose push put quality question
    questions quick quickly quiet quietly quite race radio rain raise ran rather reach read reader readers reading
    ready real realize really reason reasons receive received recent recently red reduce relationship relationships
    remember remove repeat reply report require research respect responsibility responsible rest result results return
    rich ride right ring rise risk river road rock role roof room rule rules run running runs sad safe safety said
    same sat save saw say saying says scared school schools science scientist score sea season seat second secret see
    seeing seem seems seen sell send sense sent sentence sentences separate serious serve service set seven several
    shall share sharp she she'd she'll she's ship shirt shoe shoes shop short should shouldn't show showed shown shows
    shut sick side sign similar simple simply since sing single sister sit situation situations six size skill skills
    skin sky sleep slow slowly small smaller smart smell smile snow so social society soft soil sold soldier solution
    solve some someone something sometimes somewhere son song soon sort sound sounds south space speak speaking
    special speech speed spend spent spirit sport sports spot spread spring stage stand standard star start started
    starting starts state states station stay step stick still stone stop stopped store stories storm story straight
    strange street stress strong stronger student students studied studies study studying stuff subject success
    successful such sudden suddenly suffer sugar suggest summer sun support suppose sure surface surprise surprised
    sweet swim system table take taken takes taking talk talked talking tall taste taught tax tea teach teacher
    teachers teaches teaching team teams technology teeth tell telling tells ten terrible test tests text than thank
    thanks that that's the their theirs them themselves then theory there there's these they they'd they'll they're
    they've thing things think thinking thinks third thirty this those though thought thoughts thousand three threw
    through throughout throw thus tie till time times tiny tired title to today together told tomorrow tonight too
    took tool tools top topic total touch toward towards town toy trade traditional traffic train training travel
    treat tree trees tried trip trouble truck true trust truth try trying turn turned twelve twenty twice two type
    uncle under understand understanding understood unit university unless until up upon us use used uses using usual
    usually value values various vegetable very video view village visit voice wait walk walked walking wall want
    wanted wants war warm was wash wasn't watch watched watching water way ways we we'd we'll we're we've weak wear
    weather week weekend weeks weight well went were weren't west wet what what's whatever when whenever where
    wherever whether which while white who who's whoever whole whom whose why wide wife wild will win wind window
    winter wish with within without won't wonder wonderful wood word words wore work worked worker workers working
    works world worried worry worse worst worth would wouldn't write writer writers writes writing written wrong wrote
    yeah year years yellow yes yesterday yet you you'd you'll you're you've young younger your yours yourself
""")
"""The everyday words: any other well-spelt word of five letters or more counts as a rarer one."""

ACADEMIC_STEMS = _words("""
    abandon abstract accommodat accompan accomplish accumul accura achiev acknowledg acquir acquisit adapt adequa
    adjac adjust administr advanc advoc affect aggregat allocat alternativ ambigu amend analog analys analyt analyz
    anticipat apparent append applic appreciat approach appropriat approximat arbitrar argu articulat aspect assembl
    assert assess assign assist assum assumption assur attain attitud attribut authori automat availab awar beneficial
    capab capacit categor caution challeng characteris characteriz circumstanc cite claim clarif clarit classif cognit
    coheren cohes coincid collaborat collapse comment commit communicat compat compell compensat competen competit
    complement complex compli compon compos comprehen compris comput conceiv concentrat concept conclud conclus
    concret condens conduct confer confid confirm conflict conform connect conscious consen consequen considerab
    consist constant constitut constrain construct consult consum contempor context contin contradict contrar contrast
    contribut controvers conven convers convert convey convinc cooperat coordinat correspond counter credib criter
    critic crucial cultur cumulat debat decline deduc defin deliberat demonstr denot depict deriv despit detect
    determin deviat devis devot differentiat dilemma dimension diminish disciplin discourse discret discriminat dispar
    displac display dispos distinct distinguish distort distribut divers document domain domin draft drama dynamic
    econom effectiv efficien elaborat element eliminat emerg emphas empiric enabl encounter encourag engag enhanc
    enorm ensur entit equip equival erod erosion especial essential establish estimat ethic evaluat eventual evident
    evolu evolv examin exceed excerpt exclud exclus exempl exert exhibit expan expert explan explicit exploit explor
    export expos extend extens extract facilit factor feasib featur feedback finance flaw flexib fluctuat format
    formul foster foundation fragment framework frequent function fundament furthermor generaliz generat genuin global
    grant guarant guidanc hence hierarch highlight hypothe identi identif ideolog ignoran illustrat impact implement
    implic implicit imply import impos incentiv inciden inclin incorporat indic individual induc inevitab infer
    influen inform infrastructur inheren inhibit initia innovat inquir insight inspect instanc institut instruct
    integr intellig intens intent interact interdepend intermedia intern interpret interven intrinsic introduc invest
    investigat involv irrelevan isolat justif knowledgeab labor layer legal legislat legitim liberal licens likelihood
    linear locat logic maintain maintenanc manipulat manual margin matur maxim mechanism mediat memor mental
    meticulous migrat minim minor misconcept moder modif monitor motiv mutual narrativ nevertheless nonetheless notion
    notwithstand nuanc numer objectiv obscur observ obtain obvious occup occur option organis organiz orient origin
    outcom output overall overlap overlook paradigm paradox parallel paramet partial particip passiv pattern peer
    perceiv percept period persist perspectiv persua phenomen philosoph physical pivotal plausib policy portion
    portray potential practic preced precis predict predomin prejudic preliminar premis presum previous primar
    principl prior priorit probab procedur proceed profession profound progress prohib promot prompt propor proportion
    propos prospect protocol psycholog publish pursu qualit quant quantit rational react readily reason recipro recogn
    recogniz recommend reconcil recover refin reflect reform regim region regulat reinforc reject relat relax relev
    relevan reliab relian reluctan remark render requir resid resilien resist resol resourc respond respons restor
    restrain restrict resum retain reveal revers revis revolution rhetoric rigid rigor robust scenario schem scope
    scrutin secondar sector secur select sequen shift signific similar simulat skeptic sophisticat source specif
    specul stabil stable statistic status strateg strength strengthen structur style subjectiv submit subordinat
    subsequen subsid substan substitut subtle succeed success suffic sufficien summar superfic supplement suppress
    survey survi suspend sustain symbol synthes synthet systematic target techni techniqu temporar tend tendenc
    tension terminat texture theme theor thereby thesis thorough topic trace tradition trait transfer transform
    transit transmi transpar trend trigger ultimat undergo underlie underly undermin undertak unif uniform uniqu
    univers utilis utiliz valid valua varia variab variet vehicle verif version viab violat virtual visib vision
    visual vital volum volunt vulnerab warrant welfare whereas widespread
""")
"""Beginnings of words of careful exposition; a word of six letters or more that begins with one counts."""

VAGUE = _words("""
    amazing anyways awesome awful bad basically big bunch cool fun good great guy guys huge kid kids kinda literally
    lot lots maybe nice ok okay pretty really sorta stuff super thing things totally very weird whatever yeah
""")
"""Words of casual talk, or that could be said of anything."""

SUBORDINATORS = _words("""
    although because despite if since that though unless until when whenever where whereas wherever whether which
    whichever while who whom whose why
""")
"""Words that mostly open a subordinate clause; those that are as often something else are left out."""

CONNECTIVES = _words("""
    accordingly additionally also alternatively although altogether because besides certainly consequently conversely
    equally especially eventually finally first firstly fourth furthermore generally hence however importantly indeed
    initially instead last lastly later likewise meanwhile moreover namely nevertheless next nonetheless notably
    otherwise overall particularly previously rather second secondly similarly simultaneously since specifically still
    subsequently then thereby therefore third thirdly though thus ultimately unlike whereas while yet
""")
"""Single words that tie one statement to another."""

_PHRASES = """
    above all | after all | along with | and yet | apart from | as a consequence | as a result | as long as | as
    well as | at first | at the same time | because of | but also | by comparison | by contrast | due to | even if |
    even so | even though | except for | for example | for instance | for these reasons | for this reason | given
    that | in addition | in brief | in comparison | in conclusion | in contrast | in fact | in general | in my
    opinion | in order to | in other words | in particular | in short | in spite of | in sum | in summary | in that
    case | in the end | in the first place | in the same way | in turn | just as | not only | of course | on balance
    | on the contrary | on the one hand | on the other hand | on the whole | rather than | regardless of | so that |
    such as | that is | this means | to begin with | to conclude | to illustrate | to sum up | to summarize | what
    is more | with regard to
"""
CONNECTIVE_PHRASES = frozenset(tuple(phrase.split()) for phrase in _PHRASES.split("|"))
"""Phrases of two to four words that do the same."""

PHRASE_STARTS = frozenset(phrase[0] for phrase in CONNECTIVE_PHRASES)
"""Their first words."""

MISSPELT = _words("""
    abit absense accomodate accross acheive adress advertisment agian aint allways alot amoung anual anwser apparant
    arent arguement artical athelete attendence aweful awnser basicly beacause beacuse beatiful beautifull becasue
    becaus becouse becuase becuz begining beleave beleive belive benifit beter betwen bieng blieve btw buisness
    bussiness calender cant carefull catagory cemetary changable childrens choise comming commitee comunicate comunity
    concious congradulate controll convience coud coudl couldnt couldve coz cuold cuz decison definate definately
    definatly definetly definitly descision desicion develope developement didnt difficlt diffrence diffrent difrent
    dilemna disapear disapoint discribe dissapear dissapoint doesnt dont eachother easyer eazy ecspecially edcation
    eduction embarass enviorment enviornment enviroment equiptment especialy evry evrybody evryone evrything excelent
    excercise exellent exersise existance expecially experiance expirience explaination explane famaly familiy familys
    favorit feeled feild finaly finnally firend foriegn forign fourty foward freind freinds frist fullfil futher gaurd
    gonna gotta govermant goverment gramar grammer greatful hadnt happend happyness harrass hasnt havent havnt
    helpfull heros hes hopefull howd hte humerous hungery idk ignorence im imediately immediatly importent importnat
    improtant incase incharge independant infact infomation inteligent interessting intrest intresting isnt itll ive
    jelous kno knowladge knowlege languag languege lern lerned lerning liason libary liberry lisence litle lol lonly
    looseing luv mabye maintainance makeing marrage mathmatics minature mispell mispelled morgage mountin neccesary
    neccessary necesary necessery neighter nessecary nite noone noticable nowdays ocasion occassion occassionally
    occured occurence occuring ofcourse offen omg oportunity oppertunity oppurtunity orginal orignal overal paralel
    parralel particuler payed peeple peice peices peolple peopel peple perfer performence perminent persue pls plz
    poeple posession posible possable prefered preferr privelege priviledge probally probaly probelm problm probly
    proffesional proffessor promiss pronounciation publically purpous quater questionaire realy reccomend recieve
    recieved recomend refered relevent religous rember remeber responce responsability responsable resturant rythm
    saftey scaned scedule schedual scholl sciance scince scool sence sentance sentances seperate seperated shcool shes
    shoud shouldnt shouldof shouldve shuld sience similer similiar sinse skool smater soceity societys sombody
    somthing somtimes speach stil stoped storys strenght studens studing studnet studnets succesful successfull suceed
    suprise suprised surprize swiming tatoo teached teachs techer technoligy tecnology teh tendancy thatll thats thay
    theirselves themselfs ther thered theres theyd theyll theyre theyve thier thign thik thikn thoght thougt thru thx
    tomarrow tommorow tommorrow tought tounge towords trafic tranfer truely tryed tryes tyring u unforseen
    unfortunatly untill ur usally usefull useing useualy usualy vacume vegtable veiw verry visable waht wanna wantd
    wasnt wat watn wehn werent wether weve whats wheres whitch whith whos wich wierd wih wiht wont woud wouldnt
    wouldof wouldve writeing writen writting wroten wrting wuz yall yesturday youll youre youve yung
""")
"""Frequent misspellings, lost apostrophes, and spellings of chat."""

SPELT_WELL = _words("""
    abut acknowledge airplane algebra algorithm algorithms allergies allergy angel angle antique anxiety anxious
    aquarium asleep asteroid asthma atom atoms awake awkward awoke backyard bacteria ballet banana banish baseball
    basketball bathroom bedroom beliefs bias bicycle bizarre bother bough breadth breath breathe bred bridge budget
    bully bullying burnt bytes cafeteria calves canvas carbon carrot castle casual causal chanced chess chlorophyll
    chocolate citizen citizens clam clams cliffs coarse congress constitution costs cough county courts coverage cozy
    crated crept crosswalk cubic curse cycle cycles cytoplasm dairy dealt debt depth desert deserts detail detailed
    diabetes diary diet dioxide discovery dolphin dough dreamt driveway drone drones drums eager eighth elephant email
    emails emoji emperor empire enjoyable equality equator exhausted exist expert faint fairs fancy fiend fifth filed
    filled float flourish football forth forum fossil fossils fought fridge frozen funding fungi furious furnish
    gadget galaxy gallery galley giraffe glucose golf gorgeous guitar halves hardware heath heaven highway hilarious
    hockey hoping hopping horde hose hoses hydrogen input jealous judgement judgment jungle junk kangaroo keyboard
    kidney kindergarten kingdom knelt knight knives laptop laptops latter lean leaned leaning leant leapt learnt
    lengths lettuce lever loan loaves locker lockers lonely loose loss lover lungs massage metal mixed mixing moral
    mosquito motion mount murder muscle muscles museum museums myth naive navel nourish nucleus nutrition nymph
    obesity odds online orange overslept oxygen ozone pajamas parish particle particles peach penguin photosynthesis
    physique piano pixel pizza plain plate pleas podcast polish polite potato pray pride profit profits prose publish
    pyramid queen queue quit quiz quizzes quotation quotations rabbit reached reaches realise reality recess reefs
    region religion resent revel rhythm robot robots rough route sacred salary sandwich scare scarves schedule scheme
    scholar scholarship screen screens sculpture seance seeking semester senate sheet sheets shelves sheriff shore
    sidewalk sixth skeleton slate sleeping sleigh slipping smartphone smartphones soccer software sole sought speeding
    spelt spending sphere sphinx spirits squirrel staff stair stairs stake stanza stare stared staring stating
    stationery statue statues stead steal steam sting stops straining stranger strangest stream string studios subway
    sweat swept sword syllable syntax syrup tale taxes technique tennis thieves thinning thins throne thrown tomato
    touching tough trading trail treading treaty trial trusts tutor tutors twelfth ugly umbrella unbiased uniform
    uniforms unique vaccine vaccines vacuum vanilla vanish violin virus viruses vitamin vitamins voices volcano
    volcanoes vote voter voters voting wages waiting wander wandered wanting watering wave website websites wedge
    weigh weighs wept widget width winning wishing wither wives wolves wonders wording worlds worthy wring writhing
    yearn yoga zebra zoom zoos
""")
"""True words that the rules for misspelt words would take for slips, and some whose letters are unusual."""
