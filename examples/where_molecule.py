"""Molecules that exist: SMILES whose atoms have no more bonds than they can, and that are of a given size.

Needs the package ``rdkit``.
"""

import re

from rdkit import Chem, RDLogger

import constrain

RDLogger.DisableLog("rdApp.*")


def begins_well(text: str) -> bool:
    """Asked of beginnings: have all atoms room for the bonds so far? Branches and rings are closed with any atom."""
    if text.rfind("[") > text.rfind("]"):
        return True
    outside = re.sub(r"\[[^]]*\]", "", text)
    if re.search(r"%\d?$", outside):
        return True
    rings = re.findall(r"%\d\d|\d", outside)
    open_rings = [ring for ring in sorted(set(rings)) if rings.count(ring) % 2]
    end = "" if re.search(r"[A-Za-z\d\])]$", text) else "[*]"
    end += ")" * (outside.count("(") - outside.count(")")) + "".join(f".[*]{ring}" for ring in open_rings)
    molecule = Chem.MolFromSmiles(text + end, sanitize=False)
    if molecule is None:
        return False
    return Chem.SanitizeMol(molecule, Chem.SANITIZE_PROPERTIES, catchErrors=True) == Chem.SANITIZE_NONE


def is_molecule(text: str) -> bool:
    """Asked of whole texts: is it a molecule of 5 to 15 heavy atoms, aromatic rings and all?"""
    molecule = Chem.MolFromSmiles(text)
    return molecule is not None and 5 <= molecule.GetNumHeavyAtoms() <= 15


spec = constrain.grammar_library("smiles").where(begins_well, when="token").where(is_molecule)

model = constrain.load_model()
prompt = "Molecules in SMILES notation:\nbutane CCCC\nacetic acid CC(=O)O\nphenol Oc1ccccc1\nanother CC"
result = constrain.generate(model, prompt, spec, max_tokens=20, temperature=0.8, seed=0)
print(result.text, f"({result.stats.check_calls} checks, {result.stats.backtracks} times taken back)")
assert is_molecule(result.text)
