/* For menhir: a small language with every kind of statement and expression that one would expect. */
%token <int> INT
%token <string> NAME
%token PLUS MINUS TIMES DIVIDE LESS EQUAL AND OR NOT
%token LEFT RIGHT OPEN CLOSE BEGIN END COMMA SEMICOLON COLON ARROW
%token LET REC IN IF THEN ELSE WHILE DO DONE MATCH WITH BAR FUN TYPE OF EOF
%left OR
%left AND
%nonassoc NOT
%nonassoc LESS EQUAL
%left PLUS MINUS
%left TIMES DIVIDE
%nonassoc NEGATIVE
%start <int> program
%%
program: list(item) EOF { 0 }
item:
  | LET option(REC) nonempty_list(NAME) EQUAL expression SEMICOLON { 1 }
  | TYPE NAME EQUAL separated_nonempty_list(BAR, constructor) SEMICOLON { 2 }
constructor: NAME option(preceded(OF, kind)) { 3 }
kind:
  | simple_kind { 4 }
  | simple_kind ARROW kind { 5 }
simple_kind:
  | NAME { 6 }
  | LEFT separated_list(COMMA, kind) RIGHT { 7 }
expression:
  | LET option(REC) nonempty_list(NAME) EQUAL expression IN expression { 8 }
  | IF expression THEN expression ELSE expression { 9 }
  | WHILE expression DO separated_list(SEMICOLON, expression) DONE { 10 }
  | MATCH expression WITH separated_nonempty_list(BAR, case) END { 11 }
  | FUN nonempty_list(NAME) ARROW expression { 12 }
  | operation { 13 }
case: pattern ARROW operation { 14 }
pattern:
  | NAME list(simple_pattern) { 15 }
  | simple_literal { 16 }
simple_pattern:
  | NAME { 17 }
  | LEFT separated_list(COMMA, pattern) RIGHT { 18 }
operation:
  | operation PLUS operation { 19 }
  | operation MINUS operation { 20 }
  | operation TIMES operation { 21 }
  | operation DIVIDE operation { 22 }
  | operation LESS operation { 23 }
  | operation EQUAL operation { 24 }
  | operation AND operation { 25 }
  | operation OR operation { 26 }
  | NOT operation { 27 }
  | MINUS operation %prec NEGATIVE { 28 }
  | application { 29 }
application:
  | atom { 30 }
  | application atom { 31 }
atom:
  | NAME { 32 }
  | simple_literal { 33 }
  | LEFT separated_list(COMMA, expression) RIGHT { 34 }
  | OPEN separated_list(SEMICOLON, expression) CLOSE { 35 }
  | BEGIN separated_list(SEMICOLON, expression) END { 36 }
simple_literal:
  | INT { 37 }
  | LEFT COLON INT RIGHT { 38 }
