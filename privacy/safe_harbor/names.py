"""What the name of a column says about its content, as far as the Safe Harbor rule is concerned.

A name that is not known says nothing: the caller must not take such a column for a harmless one.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from typing import TypeAlias

from privacy.safe_harbor.identifiers import Identifier, words


class Meaning(Enum):
    """What a name says, where it does not name an identifier that must be removed."""

    POSTCODE = "a postcode, of which three digits may be published"
    DATE = "a date, of which the year may be published"
    AGE = "an age, which may be published up to 89"
    STATE = "a state"
    AMOUNT = "a number of any size that does not identify a person, such as an amount of money"
    ATTRIBUTE = "a property that many persons share"
    UNKNOWN = "nothing"


NameMeaning: TypeAlias = Identifier | Meaning

# English, German, French, Spanish, Italian, Portuguese and Dutch, and the abbreviations of data sets.
_IDENTIFIERS: dict[Identifier, str] = {
    Identifier.NAMES: """
        name names firstname lastname fullname forename surname givenname middlename maidenname fname lname mname
        nickname alias initials signature signed nextofkin kin nok relative relatives spouse husband wife partner
        mother father parent parents mom dad son daughter sibling brother sister child guardian caregiver emergency
        contact employer company firm workplace organisation organization physician doctor provider clinician nurse
        therapist vorname nachname familienname arbeitgeber firma ehemann ehefrau mutter vater unterschrift angehörige
        angehoerige arzt nom prenom prénom employeur entreprise conjoint mère père medecin médecin nombre nombres
        apellido apellidos empleador empresa madre padre conyuge cónyuge esposo esposa nome cognome datore azienda
        coniuge moglie marito sobrenome apelido empregador mãe pai naam voornaam achternaam werkgever bedrijf
        echtgenoot moeder vader username login""",
    Identifier.PLACES: """
        address addr addrs street road avenue house housenumber apartment apt city cities town township village hamlet
        county cnty cty countycode parish precinct ward district municipality borough suburb neighborhood neighbourhood
        community commune locality place birthplace residence hometown tract block blockgroup geocode geohash lat
        latitude lon lng long longitude location loc coordinates coordinate coord coords gps geo metro msa cbsa fips
        geoid catchment hospital clinic facility site school university campus adresse anschrift strasse straße
        hausnummer ort wohnort geburtsort stadt gemeinde landkreis kreis bezirk stadtteil rue ville quartier
        arrondissement departement département canton lieu domicile direccion dirección calle ciudad barrio municipio
        pueblo localidad lugar condado distrito comarca indirizzo via citta città comune quartiere luogo provincia
        endereco endereço rua cidade bairro freguesia concelho adres straat stad gemeente wijk plaats woonplaats""",
    Identifier.PHONES: """
        phone phones telephone telephones tel telno mobile cell cellphone cellular landline msisdn handy telefon
        telefonnummer mobil telefone telefono teléfono celular portable movil móvil cellulare telemovel telefoon mobiel
        whatsapp pager""",
    Identifier.FAXES: "fax faxes faxno faxnumber telefax facsimile",
    Identifier.EMAILS: "email emails mail mailbox courriel correo",
    Identifier.SOCIAL_SECURITY: """
        ssn sssn ssno social socialsecurity sin nin nino itin tin nif nie dni cpf bsn pesel personnummer steuernummer
        steuerid taxid sozialversicherungsnummer svnr codicefiscale insee curp""",
    Identifier.RECORDS: """
        mrn mrno record records medrec chart charts krankenakte fallnummer dossier expediente historia""",
    Identifier.PLANS: """
        plan healthplan beneficiary member memberid membership subscriber insured insurance insurer policyholder
        medicare medicaid payer hic hicn mbi policynumber versicherung versichertennummer krankenkasse assurance seguro
        assicurazione mutuelle verzekering""",
    Identifier.ACCOUNTS: """
        account accounts acct accts iban bic bank creditcard card cardnumber pan konto kontonummer bankverbindung
        compte cuenta conto conta rekening invoice""",
    Identifier.LICENSES: """
        certificate cert license licence licenses driverslicense dl npi dea passport passeport pasaporte passaporto
        reisepass ausweis führerschein fuehrerschein fuhrerschein permis licencia patente rijbewijs visa""",
    Identifier.VEHICLES: """
        vin vehicle vehicles car plate plates registration kennzeichen immatriculation matricula targa kenteken""",
    Identifier.DEVICES: """
        device devices serial serialnumber serialno imei imsi mac macaddress udi implant pacemaker gerät geraet""",
    Identifier.URLS: "url urls uri website web webpage homepage link href facebook twitter instagram linkedin handle",
    Identifier.IPS: "ip ipaddress ipaddr ipv hostname host",
    Identifier.BIOMETRICS: """
        biometric biometrics fingerprint fingerprints voiceprint retina iris dna genome faceid voice palm""",
    Identifier.PHOTOS: """
        photo photos photograph picture pictures image images img face faces selfie portrait avatar bild foto scan""",
    Identifier.OTHERS: """
        id ids uid uuid guid pid identifier key cd hash token cookie session badge barcode qr code codes nr nbr number
        nummer numero número no pseudonym kennung identifiant identificador note notes comment comments text
        description remark remarks freetext""",
    Identifier.DATES: """
        month months day weekday dow week quarter season hour minute second time timestamp ts datetime monat tag woche
        uhrzeit mois jour semaine heure mes dia día semana hora mese giorno settimana maand dag""",
}
_STEMS: dict[str, NameMeaning] = {
    "geburtsort": Identifier.PLACES,
    "geburt": Meaning.DATE,
    "naissance": Meaning.DATE,
    "nacimiento": Meaning.DATE,
    "nascita": Meaning.DATE,
    "nascimento": Meaning.DATE,
    "geboorte": Meaning.DATE,
    "datum": Meaning.DATE,
    "telefon": Identifier.PHONES,
    "adress": Identifier.PLACES,
    "versicher": Identifier.PLANS,
    "postleit": Meaning.POSTCODE,
    "diagnos": Meaning.ATTRIBUTE,
    "diseas": Meaning.ATTRIBUTE,
    "symptom": Meaning.ATTRIBUTE,
    "illness": Meaning.ATTRIBUTE,
    "medicat": Meaning.ATTRIBUTE,
    "treatm": Meaning.ATTRIBUTE,
    "therap": Meaning.ATTRIBUTE,
    "salar": Meaning.AMOUNT,
    "income": Meaning.AMOUNT,
    "earning": Meaning.AMOUNT,
    "religio": Meaning.ATTRIBUTE,
    "educat": Meaning.ATTRIBUTE,
    "cholest": Meaning.ATTRIBUTE,
    "glucose": Meaning.ATTRIBUTE,
}
_MEANINGS: dict[Meaning, str] = {
    Meaning.POSTCODE: "zip zips zipcode zcta zipplus postcode postal postalcode plz codigopostal codepostal",
    Meaning.DATE: """
        date dates dt dob dod doa birth born birthdate birthday bday birthyear yob year years yr date_of admitted
        discharged created updated modified deceased datum fecha jahr année annee año ano anno jaar since""",
    Meaning.AGE: "age ages aged alter âge edad idade età eta leeftijd wiek",
    Meaning.STATE: "state states usstate statecode bundesland",
    Meaning.AMOUNT: """
        amount amounts balance budget capital charge charges cost costs credit debt deposit earnings expense expenses
        fare gain income loan loss pay payment premium price revenue salary spend spending spent tax total wage wages
        steps distance population count calories betrag einkommen gehalt preis kosten montant revenu salaire prix monto
        ingreso precio importo reddito prezzo salario renda preço""",
    Meaning.ATTRIBUTE: """
        sex gender race ethnic ethnicity marital civil relationship education educ degree grade schooling occupation
        job profession workclass employment employed work industry country nation nationality native citizenship
        continent language religion veteran insured_type smoking smoker smoke alcohol drinking exercise diet diagnosis
        diagnoses diag dx icd disease diseases illness condition conditions symptom symptoms drug drugs medication
        medicine treatment therapy procedure procedures outcome result results test lab severity stage allergy vaccine
        vaccination stroke cancer tumor tumour chest pain slope married pulse diabetes asthma hypertension pregnancy
        pregnant disability died dead death mortality survival survived readmitted readmission admission discharge
        encounter visit visits emergency_type blood type group glucose cholesterol insulin pressure systolic diastolic
        bp pulse heart rate bmi specialty disposition weight height temperature score scale index level dose dosage
        oxygen creatinine hemoglobin hours days duration length stay los household size family children dependents num
        item product products category class genre department shop purchase basket rating stars review vote party
        status flag approved default churn fraud risk target label response geschlecht beruf bildung familienstand
        staatsangehörigkeit land krankheit gewicht grösse größe sexe profession pays maladie poids taille sexo
        ocupacion ocupación educacion educación pais país enfermedad peso sesso professione istruzione paese malattia
        profissão doença geslacht beroep opleiding ziekte gewicht""",
}
_GLUE = words(
    """of the de du des del la le der di da do van in on at to for per is has ever my and a an was home private primary
    secondary current first last previous new old main max min avg mean median low high serum general medical chronic
    type two years patient person user customer client subject participant respondent hashed"""
)
"""Words that say nothing by themselves."""
_KEY_WORDS = words("id ids no nr nbr num number code codes key")
_DESCRIBED = words("drug product item country nation state diagnosis disease procedure medication")
"""Things whose names and codes are those of no person."""
_MEASURED = words("hours days duration length stay los per count num")
"""Words that make an element of a date a measurement: `hours_per_week`, `time_in_hospital`."""
_NO_PLACES = words("ip email mail mac web url")
"""Words that make an address another one than that of a house."""
_LOWER_TO_UPPER = re.compile(r"(?<=[^\W\d_A-Z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_TOKEN = 60


def meaning_of(name: str) -> NameMeaning:
    """Return what the name of a column says; an identifier goes before everything else that it may say.

    >>> meaning_of("dateofbirth").name, meaning_of("visit.homeAddress.ZIP").name, meaning_of("q17").name
    ('DATE', 'PLACES', 'UNKNOWN')
    >>> meaning_of("employer"), meaning_of("next_of_kin").letter, meaning_of("hours-per-week").name
    (<Identifier.NAMES: ('A', 'names of the person, relatives, employers or household members')>, 'A', 'ATTRIBUTE')
    """
    parts = [part for token in _WORD.findall(_LOWER_TO_UPPER.sub(" ", name).lower()) for part in _parts(token)]
    if "kin" in parts or ("years" in parts and "old" in parts):
        return Identifier.NAMES if "kin" in parts else Meaning.AGE
    found = [(part, meaning) for part in parts for meaning in _vocabulary().get(part, ())]
    found += [(part, meaning) for part in parts if part not in _vocabulary() for meaning in _by_stem(part)]
    meanings = {meaning for part, meaning in found if not _is_qualified(part, meaning, parts)}
    identifiers = [one for one in Identifier if one in meanings and one not in {Identifier.DATES, Identifier.OTHERS}]
    order: list[NameMeaning] = [*identifiers, Meaning.POSTCODE]
    if Meaning.AGE in meanings:
        # Ages in months or days have other limits than ages in years.
        order.append(Identifier.DATES)
    order += [Meaning.AGE, Meaning.DATE, Identifier.DATES, Identifier.OTHERS]
    order += [Meaning.STATE, Meaning.AMOUNT, Meaning.ATTRIBUTE]
    known = all(part in _GLUE or part in _vocabulary() or any(_by_stem(part)) for part in parts)
    result = next((one for one in order if one in meanings), Meaning.UNKNOWN)
    # Of a name that is understood in part only, the rest may be what identifies: `blood_qx7`.
    harmless = result in {Meaning.STATE, Meaning.AMOUNT, Meaning.ATTRIBUTE}
    return Meaning.UNKNOWN if harmless and not known else result


def _is_qualified(part: str, meaning: NameMeaning, parts: list[str]) -> bool:
    """Whether another word of the name takes this meaning from a word: `drug_name`, `hours_per_week`."""
    others = set(parts) - {part}
    if meaning is Identifier.NAMES and part in {"name", "names"}:
        return bool(others & _DESCRIBED)
    if meaning is Identifier.OTHERS and part in _KEY_WORDS:
        return bool(others & (_DESCRIBED | {"education", "icd", "diag", "dx"})) or (
            part in {"num", "number", "no"} and parts[0] == part and len(parts) > 1
        )
    if part == "years" and meaning is Meaning.DATE:
        return bool(others & {"education", "schooling", "work", *_MEASURED})
    if meaning in {Identifier.DATES, Meaning.DATE} and part not in {"date", "dob", "birth", "born"}:
        return bool(others & _MEASURED) or (part == "time" and "in" in others)
    if meaning is Identifier.PLACES and part in {"address", "addr", "hospital"}:
        return bool(others & _NO_PLACES) or ("in" in others and bool(others & {"time", *_MEASURED}))
    return False


@cache
def _vocabulary() -> dict[str, tuple[NameMeaning, ...]]:
    """Every known word and what it may mean."""
    known: dict[str, tuple[NameMeaning, ...]] = {}
    listed: list[tuple[NameMeaning, str]] = [*_IDENTIFIERS.items(), *_MEANINGS.items()]
    for meaning, text in listed:
        for word in text.split():
            known[word] = (*known.get(word, ()), meaning)
    return known


def _by_stem(part: str) -> tuple[NameMeaning, ...]:
    return next(((meaning,) for stem, meaning in _STEMS.items() if stem in part), ())


@cache
def _parts(token: str) -> tuple[str, ...]:
    """Return the known words that a token consists of, such as `date of birth`; the token itself if there are none."""
    known = _vocabulary()
    if token in known or token in _GLUE or len(token) > _LONGEST_TOKEN:
        return (token,)
    best: list[tuple[str, ...] | None] = [()] + [None] * len(token)
    for end in range(1, len(token) + 1):
        for start in range(end):
            part, before = token[start:end], best[start]
            if before is None or not ((part in _GLUE and len(part) > 1) or (part in known and _stands_inside(part))):
                continue
            if best[end] is None or len(before) + 1 < len(best[end] or ()):
                best[end] = (*before, part)
    return best[-1] or (token,)


def _stands_inside(part: str) -> bool:
    """Whether a word is long enough to be found inside of another: not `ip`, but `day`, and keys at the end."""
    return len(part) >= 3 or part in {"id", "no", "nr", "cd", "ip"}
