(* For ocamlopt.opt: functors, polymorphic variants, objects and pattern matching, which the
   compiler has to think about. *)

module type Ordered = sig
  type t

  val compare : t -> t -> int
end

module Heap (E : Ordered) = struct
  type t = Empty | Node of int * E.t * t * t

  let rank = function Empty -> 0 | Node (r, _, _, _) -> r

  let make x a b =
    if rank a >= rank b then Node (rank b + 1, x, a, b) else Node (rank a + 1, x, b, a)

  let rec merge a b =
    match (a, b) with
    | Empty, h | h, Empty -> h
    | Node (_, x, a1, b1), Node (_, y, a2, b2) ->
        if E.compare x y <= 0 then make x a1 (merge b1 b) else make y a2 (merge a b2)

  let rec to_list = function
    | Empty -> []
    | Node (_, x, a, b) -> x :: to_list (merge a b)
end

type expression =
  | Int of int
  | Var of string
  | Unary of [ `Neg | `Not ] * expression
  | Binary of [ `Add | `Sub | `Mul | `Div | `And | `Or ] * expression * expression
  | If of expression * expression * expression
  | Let of string * expression * expression
  | Call of expression * expression list

let rec simplify e =
  match e with
  | Int _ | Var _ -> e
  | Unary (`Neg, Int n) -> Int (-n)
  | Unary (`Neg, Unary (`Neg, e)) | Unary (`Not, Unary (`Not, e)) -> simplify e
  | Unary (op, e) -> Unary (op, simplify e)
  | Binary (`Add, Int a, Int b) -> Int (a + b)
  | Binary (`Sub, Int a, Int b) -> Int (a - b)
  | Binary (`Mul, Int a, Int b) -> Int (a * b)
  | Binary (`Div, Int a, Int b) when b <> 0 -> Int (a / b)
  | Binary ((`Add | `Sub), e, Int 0) | Binary (`Add, Int 0, e) -> simplify e
  | Binary ((`Mul | `Div), e, Int 1) | Binary (`Mul, Int 1, e) -> simplify e
  | Binary (`Mul, _, Int 0) | Binary (`Mul, Int 0, _) -> Int 0
  | Binary (`And, Int 0, _) | Binary (`And, _, Int 0) -> Int 0
  | Binary (`Or, Int 0, e) | Binary (`Or, e, Int 0) -> simplify e
  | Binary (op, a, b) -> Binary (op, simplify a, simplify b)
  | If (Int 0, _, e) -> simplify e
  | If (Int _, t, _) -> simplify t
  | If (c, t, e) when t = e -> ignore c; simplify t
  | If (c, t, e) -> If (simplify c, simplify t, simplify e)
  | Let (_, (Int _ as v), Var _) -> v
  | Let (x, v, e) -> Let (x, simplify v, simplify e)
  | Call (f, arguments) -> Call (simplify f, List.map simplify arguments)

class virtual visitor =
  object (self)
    method virtual name : string -> unit
    method int (_ : int) = ()

    method expression =
      function
      | Int n -> self#int n
      | Var x -> self#name x
      | Unary (_, e) -> self#expression e
      | Binary (_, a, b) -> self#expression a; self#expression b
      | If (c, t, e) -> List.iter self#expression [ c; t; e ]
      | Let (x, v, e) -> self#name x; self#expression v; self#expression e
      | Call (f, arguments) -> List.iter self#expression (f :: arguments)
  end

module Numbers = Heap (Int)
module Names = Heap (String)

let () =
  let seen = Hashtbl.create 16 in
  let v = object inherit visitor method name x = Hashtbl.replace seen x () end in
  v#expression (simplify (Let ("x", Int 1, Binary (`Add, Var "x", Binary (`Mul, Int 1, Int 2)))));
  let heap = List.fold_left (fun h n -> Numbers.(merge (Node (1, n, Empty, Empty)) h)) Numbers.Empty [ 3; 1; 2 ] in
  Printf.printf "%d names, %s\n" (Hashtbl.length seen)
    (String.concat " " (List.map string_of_int (Numbers.to_list heap)))
