(* Values that are read back from bytes: many blocks appear at once, some on the major heap. *)

type tree = Leaf | Node of tree * string * tree

let rec tree depth =
  if depth = 0 then Leaf else Node (tree (depth - 1), string_of_int depth, tree (depth - 1))

let rec size = function Leaf -> 0 | Node (l, _, r) -> 1 + size l + size r

let () =
  let total = ref 0 in
  List.iter
    (fun depth ->
      let bytes = Marshal.to_string (tree depth) [] in
      for _ = 1 to 1 lsl (15 - depth) do
        total := !total + size (Marshal.from_string bytes 0)
      done)
    [ 4; 9; 15 ];
  Printf.printf "%d\n" !total
