def attack(args, ledger): pass
