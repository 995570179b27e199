"""The small tables of two theses about categories of sensitivity, as they are printed (slips of print corrected).

Sun 2010: Privacy Preserving Data Sharing in Data Mining Environment. Sadad 2012: Preventing sensitive attribute
disclosure using improved k-anonymity model.
"""

from __future__ import annotations

from microdata import Category, Hierarchy, Sensitivity

DISEASES = ("HIV", "Cancer", "Phthisis", "Hepatitis", "Obesity", "Asthma", "Flu", "Indigestion")
SENSITIVITY = Sensitivity((("HIV", "Cancer"), ("Phthisis", "Hepatitis"), ("Obesity", "Asthma"), ("Flu", "Indigestion")))
"""Sun, Table 3.3; Sadad, Tables 3.7 and 4.2: from top secret (weight 0) to non secret (weight 1)."""
DISEASE = Category("disease", Hierarchy.flat(DISEASES), sensitivity=SENSITIVITY)

SUN_2_1 = (
    ("Male", 25, "4370", "Cancer"),
    ("Male", 25, "4370", "Cancer"),
    ("Male", 22, "4352", "Cancer"),
    ("Female", 28, "4373", "Chest Pain"),
    ("Female", 28, "4373", "Obesity"),
    ("Female", 34, "4350", "Flu"),
)
"""Gender, age, zip, disease. Table 2.2 publishes rows 1-3 as (Male, [22-25], 43**), 4-6 as (Female, [28-34], 43**)."""
SUN_2_6 = (
    ("Rick", "Male", 25, "4370"),
    ("Vicky", "Female", 28, "4373"),
    ("Rudy", "Male", 25, "4370"),
    ("Jenny", "Female", 34, "4350"),
)
"""What an attacker knows: name, gender, age, zip."""
SUN_2_8 = (
    (17, 12_000, 1_000),
    (19, 13_000, 1_010),
    (20, 14_000, 1_020),
    (24, 16_000, 50_000),
    (29, 21_000, 16_000),
    (34, 24_000, 24_000),
    (39, 36_000, 33_000),
    (45, 39_000, 31_000),
)
"""Age, zip, salary."""

SUN_3_1 = (
    (27, "USA", "14248", "HIV"),
    (28, "Canada", "14207", "HIV"),
    (26, "USA", "14206", "Cancer"),
    (25, "Canada", "14249", "Cancer"),
    (41, "China", "13053", "Hepatitis"),
    (48, "Japan", "13074", "Phthisis"),
    (45, "India", "13064", "Asthma"),
    (42, "India", "13062", "Obesity"),
    (33, "USA", "14248", "Flu"),
    (37, "Canada", "14204", "Flu"),
    (36, "Canada", "14205", "Flu"),
    (35, "USA", "14248", "Indigestion"),
)
"""Age, country, zip, disease of the persons 1 … 12."""
SUN_3_2 = ((1, 2, 3, 4), (5, 6, 7, 8), (9, 10, 11, 12))
"""The persons of each class: 2-sensitive 4-anonymous."""
SUN_3_4 = ((1, 4, 9, 12), (5, 6, 7, 8), (2, 3, 10, 11))
"""2⁺-sensitive 4-anonymous."""
SUN_3_5 = (
    ("HIV", "HIV", "Cancer", "Flu"),
    ("Hepatitis", "Phthisis", "Asthma", "Obesity"),
    ("Cancer", "Flu", "Flu", "Indigestion"),
)
"""The diseases of each class: (3,1)-sensitive 4-anonymous."""
SUN_3_6 = (("14248", "HIV"), ("14248", "Indigestion"), ("14248", "Flu"), ("14247", "Cancer"))
"""Zip, disease: the worked example of top-down local recoding."""

SADAD_RELEASED = (
    ("24064", 25, "M", "Pakistani", "HIV"),
    ("24078", 26, "M", "Indian", "HIV"),
    ("24064", 39, "M", "Canadian", "Viral Infection"),
    ("24078", 32, "F", "Japanese", "Cancer"),
)
"""Section 1.1: zip, age, gender, nationality, condition."""
SADAD_EXTERNAL = (
    ("David", "13053", 28, "Indian"),
    ("Rajesh", "24078", 26, "Indian"),
    ("Katrina", "13053", 23, "Indian"),
)
"""Section 1.1: name, zip, age, nationality."""
SADAD_2_3 = (*("Asian",) * 3, *("White",) * 3, *("Black",) * 2)
"""Race of each row, which tells its class: called 3-anonymous, but the last class has two rows."""
SADAD_3_1 = (
    ("24064", 39, "Chinese", "Viral Infection"),
    ("24064", 32, "Indian", "Viral Infection"),
    ("24079", 33, "Japanese", "Viral Infection"),
    ("24079", 38, "Japanese", "Viral Infection"),
    ("24064", 26, "Indian", "Hepatitis"),
    ("24079", 22, "Canadian", "Hepatitis"),
    ("24079", 27, "American", "Headache"),
    ("24064", 29, "Japanese", "Headache"),
    ("25964", 53, "Russian", "Heart Disease"),
    ("25967", 51, "Russian", "Heart Disease"),
    ("25963", 42, "Japanese", "Cancer"),
    ("25961", 41, "Japanese", "Cancer"),
)
"""Zip, age, nationality, condition; Table 3.2 makes a class of every four rows."""
SADAD_3_3 = (*("HIV",) * 8, "Cancer", "Hepatitis")
"""The conditions of the one class."""
SADAD_3_4 = (
    ("78677", 26, 60_000, "Gastric malignancy"),
    ("78602", 28, 80_000, "Stomach inflammation"),
    ("78678", 29, 70_000, "Gastric ulcer"),
    ("78905", 51, 40_000, "HIV"),
    ("78909", 55, 100_000, "Indigestion"),
    ("78906", 53, 90_000, "Fever"),
    ("78605", 33, 80_000, "Headache"),
    ("78673", 39, 70_000, "Flu"),
    ("78607", 30, 110_000, "Stomach cancer"),
)
"""Zip, age, salary, condition; Table 3.5 makes a class of every three rows."""
SADAD_3_10 = (("HIV", "Cancer", "HIV", "Flu"), ("Hepatitis", "Phthisis", "Asthma", "Obesity"))
"""The conditions of its two complete classes: (3,1)-sensitive, with 75 % most secret in the first."""
SADAD_4_1 = (
    ("25359", 25, "Denmark", "Flu"),
    ("25308", 29, "France", "Asthma"),
    ("25305", 23, "Germany", "Flu"),
    ("25308", 26, "France", "Indigestion"),
    ("24064", 42, "Japan", "Hepatitis"),
    ("24085", 49, "China", "Obesity"),
    ("24075", 44, "Pakistan", "Flu"),
    ("24073", 41, "Pakistan", "Phthisis"),
    ("25306", 35, "Canada", "HIV"),
    ("25305", 39, "USA", "Cancer"),
    ("25306", 32, "Canada", "Cancer"),
    ("25359", 31, "Canada", "HIV"),
)
"""Zip, age, country, condition (also Table 3.6)."""
SADAD_4_3 = (
    ("22030", "Married", "Female", "Hypertension"),
    ("22030", "Married", "Female", "Hypertension"),
    ("22030", "Single", "Male", "Obesity"),
    ("22032", "Single", "Male", "HIV"),
    ("22032", "Divorced", "Female", "Obesity"),
    ("22032", "Divorced", "Female", "Hypertension"),
    ("22045", "Divorced", "Male", "Obesity"),
    ("22047", "Widow", "Male", "HIV"),
    ("22047", "Widow", "Male", "HIV"),
    ("22047", "Single", "Female", "Obesity"),
)
"""Zip, marital status, gender, condition: the worked example of Incognito with suppression."""
SADAD_4_4 = (("73456", "M", "HIV"), ("73456", "M", "Indigestion"), ("73456", "F", "Flu"), ("73455", "F", "Cancer"))
"""Zip, gender, condition: the worked example of top-down local recoding."""
