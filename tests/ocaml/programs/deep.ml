(* Stacks of thousands of frames with allocations at every depth: none may be cut. Prints how deep
   the deepest is. *)

let depth = 3_000

let rec down n acc =
  if n = 0 then acc
  else
    let below = down (n - 1) acc in
    (n, string_of_int n) :: below

let () =
  let total = ref 0 in
  for _ = 1 to 12 do
    total := !total + List.length (Sys.opaque_identity (down depth []))
  done;
  Printf.printf "%d\n" !total
