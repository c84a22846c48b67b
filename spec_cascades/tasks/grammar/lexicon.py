"""The English-German lexicon of `demo_translation`, as tables.

Words are listed from common to rare: the generator draws the first ones more often.
`_` stands for a space within an English word.

Nouns: `english[/plural] German gender plural [weak]`; after `=` another German noun.
Verbs: `english past participle | German changed-stem participle auxiliary | object classes`,
  where `-` is "regular", a dot follows a separable prefix (`auf.machen`), and another German verb
  may follow after `=`.
Adjectives: `english[/comparative] German[:declined stem] [comparative]`; after `=` another one.
"""

PERSONS = """
man/men Mann m Männer
woman/women Frau f Frauen
child/children Kind n Kinder
teacher Lehrer m Lehrer
girl Mädchen n Mädchen
boy Junge m Jungen weak
mother Mutter f Mütter
father Vater m Väter
friend Freund m Freunde
student Student m Studenten weak
doctor Arzt m Ärzte
sister Schwester f Schwestern
brother Bruder m Brüder
neighbor Nachbar m Nachbarn weak
farmer Bauer m Bauern weak
grandmother Großmutter f Großmütter = Oma f Omas
grandfather Großvater m Großväter = Opa m Opas
daughter Tochter f Töchter
son Sohn m Söhne
baker Bäcker m Bäcker
nurse Krankenschwester f Krankenschwestern
cook Koch m Köche
aunt Tante f Tanten
uncle Onkel m Onkel
guest Gast m Gäste
waiter Kellner m Kellner
waitress/waitresses Kellnerin f Kellnerinnen
policeman/policemen Polizist m Polizisten weak
gardener Gärtner m Gärtner
painter Maler m Maler
boss/bosses Chef m Chefs
colleague Kollege m Kollegen weak
customer Kunde m Kunden weak
lady/ladies Dame f Damen
tourist Tourist m Touristen weak
king König m Könige
queen Königin f Königinnen
lawyer Anwalt m Anwälte
engineer Ingenieur m Ingenieure
driver Fahrer m Fahrer
butcher Metzger m Metzger = Fleischer m Fleischer
fisherman/fishermen Fischer m Fischer
musician Musiker m Musiker
actor Schauspieler m Schauspieler
actress/actresses Schauspielerin f Schauspielerinnen
writer Schriftsteller m Schriftsteller
journalist Journalist m Journalisten weak
scientist Wissenschaftler m Wissenschaftler
craftsman/craftsmen Handwerker m Handwerker
pilot Pilot m Piloten weak
hunter Jäger m Jäger
soldier Soldat m Soldaten weak
thief/thieves Dieb m Diebe
princess/princesses Prinzessin f Prinzessinnen
witch/witches Hexe f Hexen
niece Nichte f Nichten
nephew Neffe m Neffen weak
"""

ANIMALS = """
dog Hund m Hunde
cat Katze f Katzen
horse Pferd n Pferde
bird Vogel m Vögel
cow Kuh f Kühe
mouse/mice Maus f Mäuse
pig Schwein n Schweine
rabbit Kaninchen n Kaninchen = Hase m Hasen weak
duck Ente f Enten
bear Bär m Bären weak
goat Ziege f Ziegen
fox/foxes Fuchs m Füchse
donkey Esel m Esel
wolf/wolves Wolf m Wölfe
monkey Affe m Affen weak
goose/geese Gans f Gänse
lion Löwe m Löwen weak
elephant Elefant m Elefanten weak
snake Schlange f Schlangen
hen Henne f Hennen
"""

FOOD = """
apple Apfel m Äpfel
cake Kuchen m Kuchen
egg Ei n Eier
potato/potatoes Kartoffel f Kartoffeln
tomato/tomatoes Tomate f Tomaten
pear Birne f Birnen
banana Banane f Bananen
soup Suppe f Suppen
salad Salat m Salate
roll Brötchen n Brötchen = Semmel f Semmeln
sausage Wurst f Würste
cookie Keks m Kekse = Plätzchen n Plätzchen
orange Orange f Orangen = Apfelsine f Apfelsinen
carrot Karotte f Karotten = Möhre f Möhren
cherry/cherries Kirsche f Kirschen
strawberry/strawberries Erdbeere f Erdbeeren
onion Zwiebel f Zwiebeln
plum Pflaume f Pflaumen
nut Nuss f Nüsse
lemon Zitrone f Zitronen
pancake Pfannkuchen m Pfannkuchen
mushroom Pilz m Pilze
"""

BAKED = """
cake Kuchen m Kuchen
cookie Keks m Kekse = Plätzchen n Plätzchen
roll Brötchen n Brötchen = Semmel f Semmeln
pancake Pfannkuchen m Pfannkuchen
pie Torte f Torten
"""

READING = """
book Buch n Bücher
letter Brief m Briefe
newspaper Zeitung f Zeitungen
story/stories Geschichte f Geschichten
message Nachricht f Nachrichten
report Bericht m Berichte
magazine Zeitschrift f Zeitschriften
poem Gedicht n Gedichte
novel Roman m Romane
article Artikel m Artikel
list Liste f Listen
postcard Postkarte f Postkarten
fairy_tale Märchen n Märchen
contract Vertrag m Verträge
"""

FLAT = """
book Buch n Bücher
letter Brief m Briefe
newspaper Zeitung f Zeitungen
key Schlüssel m Schlüssel
blanket Decke f Decken
knife/knives Messer n Messer
fork Gabel f Gabeln
spoon Löffel m Löffel
shirt Hemd n Hemden
pencil Bleistift m Bleistifte
pillow Kissen n Kissen
map Landkarte f Landkarten
scarf/scarves Schal m Schals
ticket Fahrkarte f Fahrkarten
coin Münze f Münzen
"""

STANDING = """
bottle Flasche f Flaschen
cup Tasse f Tassen
glass/glasses Glas n Gläser
lamp Lampe f Lampen
chair Stuhl m Stühle
suitcase Koffer m Koffer
plate Teller m Teller
box/boxes Kiste f Kisten
bucket Eimer m Eimer
basket Korb m Körbe
candle Kerze f Kerzen
pot Topf m Töpfe
vase Vase f Vasen
"""

SUPPORTS = """
table Tisch m Tische
chair Stuhl m Stühle
bed Bett n Betten
sofa Sofa n Sofas = Couch f Couchs
window Fenster n Fenster
shelf/shelves Regal n Regale
door Tür f Türen
cupboard Schrank m Schränke
piano Klavier n Klaviere
carpet Teppich m Teppiche
mirror Spiegel m Spiegel
stove Herd m Herde
"""

THINGS = """
table Tisch m Tische
key Schlüssel m Schlüssel
bag Tasche f Taschen
picture Bild n Bilder
chair Stuhl m Stühle
lamp Lampe f Lampen
flower Blume f Blumen
clock Uhr f Uhren
cup Tasse f Tassen
ball Ball m Bälle
suitcase Koffer m Koffer
present Geschenk n Geschenke
bottle Flasche f Flaschen
glass/glasses Glas n Gläser
phone Telefon n Telefone = Handy n Handys
computer Computer m Computer = Rechner m Rechner
camera Kamera f Kameras
umbrella Regenschirm m Regenschirme = Schirm m Schirme
knife/knives Messer n Messer
spoon Löffel m Löffel
fork Gabel f Gabeln
plate Teller m Teller
pencil Bleistift m Bleistifte
mirror Spiegel m Spiegel
box/boxes Kiste f Kisten
blanket Decke f Decken
pillow Kissen n Kissen
basket Korb m Körbe
candle Kerze f Kerzen
sofa Sofa n Sofas = Couch f Couchs
bed Bett n Betten
carpet Teppich m Teppiche
rose Rose f Rosen
ring Ring m Ringe
toy Spielzeug n Spielzeuge
doll Puppe f Puppen
guitar Gitarre f Gitarren
violin Geige f Geigen
ticket Fahrkarte f Fahrkarten
map Landkarte f Landkarten
coin Münze f Münzen
ladder Leiter f Leitern
bucket Eimer m Eimer
hammer Hammer m Hämmer
rope Seil n Seile
saw Säge f Sägen
broom Besen m Besen
bell Glocke f Glocken
drum Trommel f Trommeln
flag Fahne f Fahnen
"""

MACHINES = """
lamp Lampe f Lampen
computer Computer m Computer = Rechner m Rechner
phone Telefon n Telefone = Handy n Handys
camera Kamera f Kameras
radio Radio n Radios
machine Maschine f Maschinen
television Fernseher m Fernseher
stove Herd m Herde
heater Heizung f Heizungen
"""

BREAKABLE = """
glass/glasses Glas n Gläser
plate Teller m Teller
cup Tasse f Tassen
bottle Flasche f Flaschen
mirror Spiegel m Spiegel
vase Vase f Vasen
window Fenster n Fenster
egg Ei n Eier
"""

OPENABLE = """
door Tür f Türen
window Fenster n Fenster
box/boxes Kiste f Kisten
suitcase Koffer m Koffer
bottle Flasche f Flaschen
gate Tor n Tore
bag Tasche f Taschen
drawer Schublade f Schubladen
book Buch n Bücher
"""

CLOTHES = """
shirt Hemd n Hemden
jacket Jacke f Jacken
coat Mantel m Mäntel
shoe Schuh m Schuhe
dress/dresses Kleid n Kleider
hat Hut m Hüte
sweater Pullover m Pullover
skirt Rock m Röcke
scarf/scarves Schal m Schals
sock Socke f Socken
cap Mütze f Mützen
glove Handschuh m Handschuhe
boot Stiefel m Stiefel
blouse Bluse f Blusen
belt Gürtel m Gürtel
tie Krawatte f Krawatten
"""

VEHICLES = """
car Auto n Autos = Wagen m Wagen
bicycle Fahrrad n Fahrräder = Rad n Räder
bus/buses Bus m Busse
train Zug m Züge
boat Boot n Boote
ship Schiff n Schiffe
truck Lastwagen m Lastwagen
motorcycle Motorrad n Motorräder
plane Flugzeug n Flugzeuge
tractor Traktor m Traktoren
taxi Taxi n Taxis
tram Straßenbahn f Straßenbahnen
"""

BUILDINGS = """
house Haus n Häuser
church/churches Kirche f Kirchen
bridge Brücke f Brücken
tower Turm m Türme
castle Schloss n Schlösser
wall Mauer f Mauern
school Schule f Schulen
hotel Hotel n Hotels
hospital Krankenhaus n Krankenhäuser
hut Hütte f Hütten
stable Stall m Ställe
fence Zaun m Zäune
factory/factories Fabrik f Fabriken
garage Garage f Garagen
museum Museum n Museen
"""

ROOMS = """
kitchen Küche f Küchen
room Zimmer n Zimmer
bedroom Schlafzimmer n Schlafzimmer
cellar Keller m Keller
office Büro n Büros
living_room Wohnzimmer n Wohnzimmer
bathroom Badezimmer n Badezimmer
apartment Wohnung f Wohnungen
workshop Werkstatt f Werkstätten
"""

# Mass nouns: english German gender.
DRINKS = """
coffee Kaffee m
water Wasser n
tea Tee m
milk Milch f
wine Wein m
beer Bier n
juice Saft m
lemonade Limonade f
cocoa Kakao m
"""

MASS_FOOD = """
bread Brot n
cheese Käse m
meat Fleisch n
fish Fisch m
rice Reis m
chocolate Schokolade f
butter Butter f
honey Honig m
ham Schinken m
"""

# Vessels for "a cup of tea".
VESSELS = """
cup Tasse f Tassen
glass/glasses Glas n Gläser
bottle Flasche f Flaschen
can Dose f Dosen
jug Krug m Krüge
"""

# Compounds: modifiers (english German) before heads (nouns); each pair of lines crosses freely.
COMPOUNDS = (
    (
        "furniture",
        """
kitchen Küchen
garden Garten
office Büro
school Schul
bedroom Schlafzimmer
living_room Wohnzimmer
wood Holz
metal Metall
hotel Hotel
dining_room Esszimmer
""",
        """
table Tisch m Tische
chair Stuhl m Stühle
lamp Lampe f Lampen
shelf/shelves Regal n Regale
door Tür f Türen
window Fenster n Fenster
cupboard Schrank m Schränke
bench/benches Bank f Bänke
clock Uhr f Uhren
""",
    ),
    (
        "dishes",
        """
apple Apfel
potato Kartoffel
tomato Tomaten
vegetable Gemüse
chicken Hühner
carrot Karotten
onion Zwiebel
mushroom Pilz
fish Fisch
bean Bohnen
pumpkin Kürbis
""",
        """
soup Suppe f Suppen
salad Salat m Salate
""",
    ),
    (
        "cakes",
        """
apple Apfel
cherry Kirsch
chocolate Schokoladen
plum Pflaumen
lemon Zitronen
strawberry Erdbeer
nut Nuss
cheese Käse
birthday Geburtstags
honey Honig
""",
        """
cake Kuchen m Kuchen
pie Torte f Torten
""",
    ),
    (
        "clothing",
        """
winter Winter
summer Sommer
leather Leder
rain Regen
wool Woll
sports Sport
work Arbeits
silk Seiden
""",
        """
jacket Jacke f Jacken
coat Mantel m Mäntel
shoe Schuh m Schuhe
hat Hut m Hüte
dress/dresses Kleid n Kleider
shirt Hemd n Hemden
""",
    ),
    (
        "vessels",
        """
coffee Kaffee
tea Tee
water Wasser
wine Wein
beer Bier
milk Milch
""",
        """
cup Tasse f Tassen
glass/glasses Glas n Gläser
bottle Flasche f Flaschen
jug Krug m Krüge
""",
    ),
    (
        "keys",
        """
house Haus
car Auto
garage Garagen
cellar Keller
hotel Hotel
room Zimmer
church Kirchen
office Büro
""",
        """
key Schlüssel m Schlüssel
""",
    ),
    (
        "doors",
        """
house Haus
cellar Keller
church Kirchen
hotel Hotel
garage Garagen
""",
        """
door Tür f Türen
window Fenster n Fenster
""",
    ),
    (
        "texts",
        """
school Schul
children's Kinder
art Kunst
fashion Mode
sports Sport
travel Reise
nature Natur
history Geschichts
""",
        """
book Buch n Bücher
magazine Zeitschrift f Zeitschriften
report Bericht m Berichte
""",
    ),
    (
        "staff",
        """
school Schul
village Dorf
hotel Hotel
hospital Krankenhaus
sports Sport
city Stadt
""",
        """
doctor Arzt m Ärzte
director Direktor m Direktoren
gardener Gärtner m Gärtner
teacher Lehrer m Lehrer
cook Koch m Köche
""",
    ),
)

# Places: english_preposition english German_preposition German gender; the way there is in/auf +
# accusative, or zu + dative.
PLACES = """
in garden in Garten m
in kitchen in Küche f
in city in Stadt f
in park in Park m
at school in Schule f
in forest in Wald m
at station an Bahnhof m
at market auf Markt m
in office in Büro n
in restaurant in Restaurant n
in house in Haus n
on street auf Straße f
at lake an See m
in library in Bibliothek f
in village in Dorf n
in shop in Laden m = in Geschäft n
in hospital in Krankenhaus n
in church in Kirche f
on balcony auf Balkon m
at beach an Strand m
in hotel in Hotel n
in cinema in Kino n
in theater in Theater n
in museum in Museum n
in cellar in Keller m
at river an Fluss m
on farm auf Bauernhof m
in café in Café n
on meadow auf Wiese f
in bakery in Bäckerei f
at airport an Flughafen m
in castle in Schloss n
on playground auf Spielplatz m
at bus_stop an Haltestelle f
in field auf Feld n
in pharmacy in Apotheke f
on island auf Insel f
at harbor an Hafen m
in stable in Stall m
on terrace auf Terrasse f
in mountains in Berge pl
at university an Universität f
"""

# Cities and countries: english German; countries with an article give both cases.
TOWNS = """
Berlin Berlin
Munich München
Vienna Wien
Hamburg Hamburg
Germany Deutschland
Cologne Köln
Austria Österreich
Italy Italien
Zurich Zürich
France Frankreich
Dresden Dresden
Spain Spanien
Leipzig Leipzig
Nuremberg Nürnberg
Bremen Bremen
Salzburg Salzburg
Poland Polen
Prague Prag
Rome Rom
Greece Griechenland
"""

NAMES = """
Anna f
Peter m
Maria f
Paul m
Laura f
Julia f
Karl m
Sophie f
Otto m
Emma f
Clara f
Martin m
Lena f
Simon m
Eva f
Oskar m
"""

# Objects: classes of nouns that the verb takes.
TRANSITIVE = """
buy bought bought | kaufen - gekauft h | THINGS FOOD CLOTHES VEHICLES READING furniture texts
see saw seen | sehen sieh gesehen h | PERSONS ANIMALS VEHICLES BUILDINGS THINGS staff
read read read | lesen lies gelesen h | READING texts
eat ate eaten | essen iss gegessen h | FOOD dishes cakes MASS_FOOD
find found found | finden - gefunden h | THINGS ANIMALS CLOTHES keys PERSONS
drink drank drunk | trinken - getrunken h | DRINKS CUPS
write wrote written | schreiben - geschrieben h | READING
look_for - - | suchen - gesucht h | THINGS ANIMALS CLOTHES keys PERSONS
open - - | auf.machen - aufgemacht h = öffnen - geöffnet h | OPENABLE doors
need - - | brauchen - gebraucht h | THINGS CLOTHES VEHICLES keys PERSONS MASS_FOOD
sell sold sold | verkaufen - verkauft h | THINGS FOOD CLOTHES VEHICLES furniture cakes
visit - - | besuchen - besucht h | PERSONS BUILDINGS staff
love - - | lieben - geliebt h | PERSONS ANIMALS READING
cook - - | kochen - gekocht h | dishes VEGETABLES
build built built | bauen - gebaut h | BUILDINGS furniture
close - - | zu.machen - zugemacht h = schließen - geschlossen h | OPENABLE doors
repair - - | reparieren - repariert h | VEHICLES MACHINES furniture
carry - - | tragen träg getragen h | THINGS STANDING
wear wore worn | tragen träg getragen h | CLOTHES clothing
call - - | an.rufen - angerufen h | PERSONS staff
meet met met | treffen triff getroffen h | PERSONS staff
wash - - | waschen wäsch gewaschen h | CLOTHES VEHICLES vessels
lose lost lost | verlieren - verloren h | THINGS keys CLOTHES
bake - - | backen - gebacken h | BAKED cakes
clean - - | putzen - geputzt h | ROOMS VEHICLES furniture
forget forgot forgotten | vergessen vergiss vergessen h | THINGS keys CLOTHES
know knew known | kennen - gekannt h | PERSONS BUILDINGS
feed fed fed | füttern - gefüttert h | ANIMALS
watch - - | beobachten - beobachtet h | ANIMALS PERSONS
put_on put put | an.ziehen - angezogen h | CLOTHES clothing
take_off took taken | aus.ziehen - ausgezogen h | CLOTHES clothing
turn_on - - | ein.schalten - eingeschaltet h = an.machen - angemacht h | MACHINES
turn_off - - | aus.schalten - ausgeschaltet h = aus.machen - ausgemacht h | MACHINES
pick_up - - | ab.holen - abgeholt h | PERSONS
invite - - | ein.laden läd eingeladen h | PERSONS staff
paint - - | malen - gemalt h | ANIMALS BUILDINGS
draw drew drawn | zeichnen - gezeichnet h | ANIMALS BUILDINGS
bring_along brought brought | mit.bringen - mitgebracht h | THINGS FOOD cakes
tidy_up - - | auf.räumen - aufgeräumt h | ROOMS
break broke broken | zerbrechen zerbrich zerbrochen h | BREAKABLE vessels
throw_away threw thrown | weg.werfen wirf weggeworfen h | THINGS READING
steal stole stolen | stehlen stiehl gestohlen h | THINGS VEHICLES
hide hid hidden | verstecken - versteckt h | THINGS keys
order - - | bestellen - bestellt h | dishes cakes FOOD
look_at - - | an.sehen sieh angesehen h | BUILDINGS READING
use - - | benutzen - benutzt h = verwenden - verwendet h | THINGS MACHINES
peel - - | schälen - geschält h | FRUIT
unpack - - | aus.packen - ausgepackt h | PACKED
try_on - - | an.probieren - anprobiert h | CLOTHES clothing
drive drove driven | fahren fähr gefahren h | VEHICLES
catch caught caught | fangen fäng gefangen h | ANIMALS
greet - - | grüßen - gegrüßt h = begrüßen - begrüßt h | PERSONS staff
describe - - | beschreiben - beschrieben h | PERSONS BUILDINGS
photograph - - | fotografieren - fotografiert h | ANIMALS BUILDINGS PERSONS
prepare - - | vor.bereiten - vorbereitet h | dishes READING
hang_up hung hung | auf.hängen - aufgehängt h | HANGING
copy - - | ab.schreiben - abgeschrieben h | READING
"""

VEGETABLES = """
egg Ei n Eier
potato/potatoes Kartoffel f Kartoffeln
soup Suppe f Suppen
carrot Karotte f Karotten = Möhre f Möhren
sausage Wurst f Würste
"""

FRUIT = """
apple Apfel m Äpfel
potato/potatoes Kartoffel f Kartoffeln
orange Orange f Orangen = Apfelsine f Apfelsinen
carrot Karotte f Karotten = Möhre f Möhren
pear Birne f Birnen
onion Zwiebel f Zwiebeln
banana Banane f Bananen
"""

PACKED = """
suitcase Koffer m Koffer
present Geschenk n Geschenke
bag Tasche f Taschen
box/boxes Kiste f Kisten
"""

HANGING = """
picture Bild n Bilder
coat Mantel m Mäntel
mirror Spiegel m Spiegel
jacket Jacke f Jacken
lamp Lampe f Lampen
flag Fahne f Fahnen
"""

# Verbs with a dative object that is a person.
DATIVE = """
help - - | helfen hilf geholfen h
thank - - | danken - gedankt h
answer - - | antworten - geantwortet h
listen_to - - | zu.hören - zugehört h
follow - - | folgen - gefolgt s
believe - - | glauben - geglaubt h
trust - - | vertrauen - vertraut h
congratulate - - | gratulieren - gratuliert h
serve - - | dienen - gedient h
"""

# Verbs with a person and a thing: dative and accusative.
DITRANSITIVE = """
give gave given | geben gib gegeben h | THINGS READING FOOD keys
show - - | zeigen - gezeigt h | THINGS READING BUILDINGS
send sent sent | schicken - geschickt h = senden - gesendet h | READING THINGS
bring brought brought | bringen - gebracht h | FOOD THINGS cakes DRINKS CUPS
buy bought bought | kaufen - gekauft h | CLOTHES THINGS FOOD
lend lent lent | leihen - geliehen h | VEHICLES READING THINGS
tell told told | erzählen - erzählt h | TALES
write wrote written | schreiben - geschrieben h | LETTERS
sell sold sold | verkaufen - verkauft h | VEHICLES THINGS
offer - - | an.bieten - angeboten h | FOOD cakes DRINKS
recommend - - | empfehlen empfiehl empfohlen h | READING dishes
read read read | vor.lesen lies vorgelesen h | READING
"""

TALES = """
story/stories Geschichte f Geschichten
fairy_tale Märchen n Märchen
joke Witz m Witze
secret Geheimnis n Geheimnisse
"""

LETTERS = """
letter Brief m Briefe
message Nachricht f Nachrichten
postcard Postkarte f Postkarten
poem Gedicht n Gedichte
"""

INTRANSITIVE = """
sleep slept slept | schlafen schläf geschlafen h
work - - | arbeiten - gearbeitet h
sing sang sung | singen - gesungen h
wait - - | warten - gewartet h
play - - | spielen - gespielt h
dance - - | tanzen - getanzt h
laugh - - | lachen - gelacht h
swim swam swum | schwimmen - geschwommen s
cry - - | weinen - geweint h
sit sat sat | sitzen - gesessen h
get_up got gotten | auf.stehen - aufgestanden s
fall_asleep fell fallen | ein.schlafen schläf eingeschlafen s
wake_up woke woken | auf.wachen - aufgewacht s
go_shopping went gone | ein.kaufen - eingekauft h
learn - - | lernen - gelernt h
cook - - | kochen - gekocht h
watch_television - - | fern.sehen sieh ferngesehen h
pray - - | beten - gebetet h
smoke - - | rauchen - geraucht h
whistle - - | pfeifen - gepfiffen h
eat_breakfast ate eaten | frühstücken - gefrühstückt h
"""

MOTION = """
go went gone | gehen - gegangen s
drive drove driven | fahren fähr gefahren s
run ran run | laufen läuf gelaufen s = rennen - gerannt s
travel - - | reisen - gereist s
come came come | kommen - gekommen s
hike - - | wandern - gewandert s
hurry - - | eilen - geeilt s
return - - | zurück.kehren - zurückgekehrt s
"""

# Verbs that take "to" and an infinitive: German has a comma and "zu".
CONTROL = """
try - - | versuchen - versucht h
forget forgot forgotten | vergessen vergiss vergessen h
hope - - | hoffen - gehofft h
begin began begun | beginnen - begonnen h = an.fangen fäng angefangen h
decide - - | beschließen - beschlossen h
plan - - | planen - geplant h
promise - - | versprechen versprich versprochen h
"""

SAYING = """
say said said | sagen - gesagt h
think thought thought | denken - gedacht h = glauben - geglaubt h
know knew known | wissen - gewusst h
hope - - | hoffen - gehofft h
write wrote written | schreiben - geschrieben h
believe - - | glauben - geglaubt h
see saw seen | sehen sieh gesehen h
hear heard heard | hören - gehört h
"""

PERSON_ADJECTIVES = """
old/older alt älter
young/younger jung jünger
small/smaller klein kleiner
friendly/friendlier freundlich freundlicher = nett netter
tired müde:müd
happy/happier glücklich glücklicher
clever/more_clever klug klüger = schlau schlauer
sick krank
rich/richer reich reicher
poor/poorer arm ärmer
sad/sadder traurig trauriger
famous/more_famous berühmt berühmter
lazy/lazier faul fauler
hungry hungrig
angry wütend = zornig
strict/stricter streng strenger
funny/funnier lustig lustiger = witzig witziger
brave/braver mutig mutiger = tapfer tapferer
polite/more_polite höflich höflicher
strong/stronger stark stärker
curious/more_curious neugierig neugieriger
hardworking fleißig
strange/stranger seltsam seltsamer = merkwürdig merkwürdiger
quiet/quieter ruhig ruhiger
nervous nervös
"""

ANIMAL_ADJECTIVES = """
big/bigger groß größer
small/smaller klein kleiner
old/older alt älter
black schwarz
white weiß
hungry hungrig
wild/wilder wild wilder
brown braun
fat/fatter dick dicker
dangerous/more_dangerous gefährlich gefährlicher
fast/faster schnell schneller
gray grau
tame zahm
clever/more_clever klug klüger = schlau schlauer
"""

THING_ADJECTIVES = """
new/newer neu neuer
old/older alt älter
big/bigger groß größer
small/smaller klein kleiner
red rot
beautiful/more_beautiful schön schöner = hübsch hübscher
expensive/more_expensive teuer:teur teurer
cheap/cheaper billig billiger
blue blau
green grün
black schwarz
white weiß
long/longer lang länger
short/shorter kurz kürzer
heavy/heavier schwer schwerer
yellow gelb
brown braun
dirty/dirtier schmutzig schmutziger = dreckig dreckiger
clean/cleaner sauber sauberer
light/lighter leicht leichter
broken kaputt
modern/more_modern modern moderner
gray grau
valuable/more_valuable wertvoll wertvoller = kostbar kostbarer
ugly/uglier hässlich hässlicher
round rund
useful/more_useful nützlich nützlicher
colorful/more_colorful bunt bunter
dark/darker dunkel:dunkl dunkler
soft/softer weich weicher
"""

FOOD_ADJECTIVES = """
fresh/fresher frisch frischer
sweet/sweeter süß süßer
warm/warmer warm wärmer
cold/colder kalt kälter
delicious/more_delicious lecker leckerer = köstlich köstlicher
hot/hotter heiß heißer
big/bigger groß größer
sour/saurer sauer:saur saurer
healthy/healthier gesund gesünder
expensive/more_expensive teuer:teur teurer
salty/saltier salzig salziger
"""

READING_ADJECTIVES = """
long/longer lang länger
interesting/more_interesting interessant interessanter = spannend spannender
new/newer neu neuer
short/shorter kurz kürzer
boring/more_boring langweilig langweiliger
important/more_important wichtig wichtiger
old/older alt älter
funny/funnier lustig lustiger = witzig witziger
famous/more_famous berühmt berühmter
sad/sadder traurig trauriger
strange/stranger seltsam seltsamer = merkwürdig merkwürdiger
difficult/more_difficult schwierig schwieriger
"""

# Adverbials of time: english | German, for the tense.
TIMES_PRESENT = """
today | heute
now | jetzt
every day | jeden Tag
in the morning | am Morgen
in the evening | am Abend
on Monday | am Montag
on Sunday | am Sonntag
on the weekend | am Wochenende
at noon | am Mittag
in summer | im Sommer
on Friday | am Freitag
in winter | im Winter
at night | in der Nacht
every week | jede Woche
on Saturday | am Samstag
in the afternoon | am Nachmittag
on Tuesday | am Dienstag
after work | nach der Arbeit
in spring | im Frühling
on Wednesday | am Mittwoch
in autumn | im Herbst
on Thursday | am Donnerstag
before breakfast | vor dem Frühstück
after school | nach der Schule
every year | jedes Jahr
in May | im Mai
in December | im Dezember
in July | im Juli
in October | im Oktober
in March | im März
"""

TIMES_PAST = """
yesterday | gestern
last week | letzte Woche
last year | letztes Jahr
this morning | heute Morgen
last summer | letzten Sommer
on Monday | am Montag
last night | letzte Nacht
on Sunday | am Sonntag
two days ago | vor zwei Tagen
three weeks ago | vor drei Wochen
a year ago | vor einem Jahr
in the evening | am Abend
four months ago | vor vier Monaten
before the concert | vor dem Konzert
five years ago | vor fünf Jahren
after the party | nach dem Fest
an hour ago | vor einer Stunde
"""

TIMES_FUTURE = """
tomorrow | morgen
soon | bald
next week | nächste Woche
next year | nächstes Jahr
tonight | heute Abend
on Friday | am Freitag
next summer | nächsten Sommer
in two days | in zwei Tagen
tomorrow morning | morgen früh
in three weeks | in drei Wochen
in an hour | in einer Stunde
next month | nächsten Monat
"""

# Adverbs that stand before the main verb in English.
FREQUENCY = """
often | oft = häufig
always | immer
sometimes | manchmal
usually | meistens
rarely | selten
already | schon
"""

MANNER = """
quickly | schnell = rasch
slowly | langsam
quietly | leise
carefully | vorsichtig
alone | allein
happily | fröhlich
secretly | heimlich
patiently | geduldig
for two hours | zwei Stunden lang
for an hour | eine Stunde lang
"""

CLOCK = ("eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun", "zehn")
NUMBERS = (
    ("two", "zwei"),
    ("three", "drei"),
    ("four", "vier"),
    ("five", "fünf"),
    ("six", "sechs"),
    ("seven", "sieben"),
    ("eight", "acht"),
    ("ten", "zehn"),
    ("twelve", "zwölf"),
    ("twenty", "zwanzig"),
)
