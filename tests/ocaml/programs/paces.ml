(* Allocates when it is told to: a line of the input is a number of blocks to keep, or "drop". Says how many there are, and
   ends with the input. *)

let kept : int array list ref = ref []

let[@inline never] keep n =
  for i = 1 to n do
    kept := Array.make (1 + (i mod 60)) i :: !kept
  done

let () =
  try
    while true do
      (match input_line stdin with
      | "drop" ->
          kept := [];
          Gc.full_major ()
      | line -> keep (int_of_string line));
      Printf.printf "%d\n%!" (List.length !kept)
    done
  with End_of_file -> exit 3
